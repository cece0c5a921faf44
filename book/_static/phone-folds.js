// On a phone a record is a hundred screens: its parts are folded.
window.phoneFolds = {
  narrow: () => matchMedia("(max-width: 600px)").matches,

  fold(parts, name) {
    const fold = document.createElement("details");
    fold.className = `phone-fold ${name}`;
    parts[0].before(fold);
    fold.append(document.createElement("summary"), ...parts);
    return fold;
  },

  count: (n, what) => n === 1 ? `1 ${what}` : `${n} ${what}s`,
};
