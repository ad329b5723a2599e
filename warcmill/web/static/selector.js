// An archived page in a frame that runs nothing, and the selector helper: a click proposes a CSS selector.
//
// The page is parsed into a document that is inert: it loads and runs nothing. Selectors ask that one. What the frame
// shows is made from it, element by element, without any attribute that loads, runs, leads away or styles.

const MOST = 20000; // elements that are shown
const GONE = new Set(["script", "style", "link", "meta", "base", "template", "head", "param", "source", "track"]);
const NAMED = new Set(["img", "picture", "video", "audio", "canvas", "iframe", "frame", "frameset", "object", "embed", "svg", "math", "portal", "map"]);
const KEPT = ["alt", "colspan", "dir", "headers", "lang", "open", "rowspan", "scope", "start", "title"];
const OTHERWISE = { noscript: "div", form: "div", body: "div", html: "div", a: "u", button: "span", select: "span", option: "span", textarea: "span", input: "span", label: "span", dialog: "div", marquee: "div" };
const STYLE = `
  html { font: 16px/1.5 system-ui, sans-serif; background: #ffffff; color: #1d2124; cursor: default; }
  body { margin: 8px; overflow-wrap: anywhere; }
  u { color: #1a4f86; }
  [data-kind] { color: #565b60; }
  :hover:not(:has(:hover)):not(html, body) { outline: 1px dashed #565b60; }
  [data-marked] { outline: 3px solid #8c4406 !important; background: #fbeaa6; }
`;
const NAME = /^-?[_a-zA-Z][\w-]*$/;

// The part of a selector for one element: its tag, and its id, or its classes.
function part(element) {
  const tag = element.localName;
  if (NAME.test(element.id)) {
    return { tag, more: [`#${element.id}`] };
  }
  return { tag, more: [...element.classList].filter((one) => NAME.test(one)).map((one) => `.${one}`) };
}

function written(parts) {
  return parts.map(({ tag, more, joined }, place) => `${place ? joined : ""}${tag}${more.join("")}`).join("");
}

// Browsers add <tbody> to tables, and lxml does not: no selector names it.
function partsOf(element) {
  const parts = [];
  let joined = " > ";
  for (let one = element; one && one.localName !== "html"; one = one.parentElement) {
    if (one.localName === "tbody") {
      joined = " ";
      if (parts.length) {
        parts[0].joined = " ";
      }
      continue;
    }
    if (!NAME.test(one.localName)) {
      break;
    }
    parts.unshift({ ...part(one), joined: " > " });
    if (parts.length > 1 && joined === " ") {
      parts[1].joined = " ";
    }
    joined = " > ";
  }
  return parts;
}

function same(found, wanted) {
  return found.length === wanted.length && wanted.every((one, place) => one === found[place]);
}

// A short selector for an element and all that are like it: at the end of the same tags and classes.
export function proposed(element) {
  const all = partsOf(element);
  if (!all.length) {
    return element.parentElement ? proposed(element.parentElement) : "*"; // its name can stand in no selector
  }
  const page = element.ownerDocument;
  const wanted = [...page.querySelectorAll(written(all))];
  const fits = (parts) => same([...page.querySelectorAll(written(parts))], wanted);
  let found = all;
  for (let first = all.length - 1; first > 0; first -= 1) {
    if (fits(all.slice(first))) {
      found = all.slice(first);
      break;
    }
  }
  for (let place = 0; place < found.length; place += 1) {
    const isLast = place === found.length - 1; // its own name stays, as other pages may have more of its tag
    for (const one of found[place].more.slice(isLast ? 1 : 0).reverse()) {
      const less = found.map((own, at) => (at === place ? { ...own, more: own.more.filter((two) => two !== one) } : own));
      found = fits(less) ? less : found;
    }
  }
  for (let place = found.length - 2; place > 0; place -= 1) {
    const less = found.filter((_, at) => at !== place).map((own, at) => (at === place ? { ...own, joined: " " } : own));
    found = fits(less) ? less : found;
  }
  return written(found);
}

// What the frame has in place of an element; null for one that it has not.
function shownAs(element, page, isOurs) {
  const tag = element.localName;
  if (GONE.has(tag)) {
    return null;
  }
  if (!isOurs || NAMED.has(tag)) {
    const made = page.createElement("span");
    made.dataset.kind = tag;
    made.textContent = `[${tag}${element.getAttribute?.("alt") ? `: ${element.getAttribute("alt")}` : ""}] `;
    return made;
  }
  let made;
  try {
    made = page.createElement(OTHERWISE[tag] ?? tag);
  } catch {
    made = page.createElement("span"); // a parser takes names that a document does not
  }
  if (tag === "input") {
    made.textContent = `[${element.value || element.placeholder || "input"}] `;
  }
  for (const name of KEPT) {
    if (element.hasAttribute(name)) {
      made.setAttribute(name, element.getAttribute(name));
    }
  }
  return made;
}

// The page in a frame. `chosen` is called with the selector for an element that is clicked.
export class ShownPage {
  constructor(frame, chosen) {
    this.frame = frame;
    this.chosen = chosen;
    this.source = null;
    this.isCut = false;
  }

  async show(text) {
    this.source = new DOMParser().parseFromString(text, "text/html");
    this.shown = new Map();
    this.turn = (this.turn ?? 0) + 1;
    const turn = this.turn;
    const page = await this.emptied();
    if (turn !== this.turn) {
      return; // another page is to be shown by now
    }
    const style = new page.defaultView.CSSStyleSheet();
    style.replaceSync(STYLE);
    page.adoptedStyleSheets = [style];
    this.sources = new WeakMap();
    this.isCut = false;
    this.fill(this.source.body ?? this.source.documentElement, page.body);
    for (const kind of ["click", "auxclick", "submit", "dragstart"]) {
      page.addEventListener(kind, (event) => this.clicked(event, kind), true);
    }
  }

  // A frame without a page: what was there is gone, and so are its listeners.
  emptied() {
    return new Promise((resolve) => {
      this.frame.addEventListener("load", () => resolve(this.frame.contentDocument), { once: true });
      this.frame.srcdoc = '<!doctype html><html lang="en"><head><title>Page</title></head><body></body></html>';
    });
  }

  fill(source, into) {
    const page = into.ownerDocument;
    const ours = document.documentElement.namespaceURI;
    const waiting = [[source, into]];
    let number = 0;
    while (waiting.length) {
      const [from, to] = waiting.pop();
      for (const child of from.childNodes) {
        if (child.nodeType === Node.TEXT_NODE) {
          to.append(page.createTextNode(child.data));
        } else if (child.nodeType === Node.ELEMENT_NODE) {
          number += 1;
          if (number > MOST) {
            this.isCut = true;
            return;
          }
          const isOurs = child.namespaceURI === ours;
          const made = shownAs(child, page, isOurs);
          if (made) {
            this.shown.set(child, made);
            this.sources.set(made, child);
            to.append(made);
            if (isOurs && !NAMED.has(child.localName)) {
              waiting.push([child, made]);
            }
          }
        }
      }
    }
  }

  clicked(event, kind) {
    event.preventDefault();
    event.stopPropagation();
    const source = kind === "click" && this.sources.get(event.target);
    if (source) {
      this.chosen(proposed(source));
    }
  }

  // Mark what a selector matches; return how many there are, or null for a text that is no selector.
  mark(selector) {
    for (const one of this.shown.values()) {
      one.removeAttribute("data-marked");
    }
    if (!selector.trim()) {
      return 0;
    }
    try {
      const found = [...this.source.querySelectorAll(selector)];
      const shown = found.map((one) => this.shown.get(one)).filter(Boolean);
      shown.forEach((one) => one.setAttribute("data-marked", ""));
      shown[0]?.scrollIntoView({ block: "nearest" });
      return found.length;
    } catch {
      return null;
    }
  }
}
