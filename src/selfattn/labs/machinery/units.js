// Large numbers with their units.

// 1234567890 as "1.23 G" with the unit given.
export function scaled(number, unit) {
  const steps = ["", "k", "M", "G", "T", "P", "E"];
  const step = Math.min(steps.length - 1,
    Math.max(0, Math.floor(Math.log10(number) / 3)));
  const small = number / 1000 ** step;
  return `${small.toPrecision(3)} ${steps[step]}${unit}`;
}
