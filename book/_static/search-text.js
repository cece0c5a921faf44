// What a search result quotes is the text of a page as it is read: not the
// menus around it, and each formula once.
(() => {
  const quote = Search.htmlToText;
  Search.htmlToText = (html, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    const article = page.querySelector("article.bd-article");
    if (!article) return quote(html, anchor);
    const unread = ".katex-html, annotation, .claim-test, summary";
    for (const part of article.querySelectorAll(unread)) part.remove();
    return quote(`<div role="main">${article.innerHTML}</div>`, anchor);
  };
})();
