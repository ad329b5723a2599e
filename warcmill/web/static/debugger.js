// The page of a script: its editor, and the steps of the debugger. Every answer is shown as text.

import { edit } from "/static/editor.js";
import { ShownPage } from "/static/selector.js";

const byId = (id) => document.getElementById(id);
const root = byId("debugger");
const forms = JSON.parse(root.dataset.forms);
const way = root.dataset.way;
const save = byId("save");
const taskField = byId("task");
const plain = byId("text");
const TABS = ["follows", "messages", "result", "log", "html", "web", "try"];

let stored = root.dataset.stored; // the task of this page, whose record is its first answer
let past = []; // the tasks before, with what their steps have brought
let now = null; // what the last step has brought
let shownTab = "";
let isAuto = true; // the tab is chosen by what a step brings, until a person chooses HTML or Web
let hasChanged = false;

const editor = edit(byId("editor"), plain.value, "Text of the script", () => {
  hasChanged = true;
  byId("saved").textContent = "";
});
plain.hidden = true;
for (const id of ["editor", "buttons", "keys"]) {
  byId(id).hidden = false;
}

// Making elements

function made(tag, text = "", attributes = {}) {
  const element = document.createElement(tag);
  element.textContent = text;
  Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
  return element;
}

function pre(text, label) {
  return made("pre", text, { tabindex: "0", role: "region", "aria-label": label });
}

function say(text, isWrong = false) {
  byId("said").textContent = text;
  byId("said").className = isWrong ? "wrong" : "quiet";
}

// Asking the server

async function post(what, fields) {
  const body = new URLSearchParams({ ...fields, form: forms[what], format: "json" });
  const answer = await fetch(`${way}/${what}?format=json`, { method: "POST", body, redirect: "error" });
  const found = await answer.json();
  if (found.form) {
    forms[what] = found.form;
  }
  return { status: answer.status, found };
}

// Do one thing at a time; what goes wrong is said.
async function busy(words, act) {
  if (root.getAttribute("aria-busy") === "true") {
    return;
  }
  root.setAttribute("aria-busy", "true");
  say(words);
  try {
    await act();
  } catch (error) {
    say(`The server does not answer: ${error.message}`, true);
  } finally {
    root.setAttribute("aria-busy", "false");
  }
}

async function step(isAgain = false) {
  await busy(isAgain ? "Fetching" : "Running", async () => {
    const fields = { text: editor.text(), task: taskField.value, answer: now?.answer?.id ?? "", stored };
    const { status, found } = await post("step", isAgain ? { ...fields, again: "1" } : fields);
    if (status !== 200) {
      say(found.error, true);
      return;
    }
    if (found.answer) {
      found.answer.text ??= now?.answer?.text ?? ""; // it is sent once
    }
    now = found;
    await show();
  });
}

// A task as a person edits it: its script is that of the page, and empty parts say nothing.
function tidied(task) {
  const isEmpty = (value) => value === null || (typeof value === "object" && !Object.keys(value).length);
  return Object.fromEntries(Object.entries(task).filter(([name, value]) => name !== "project" && !isEmpty(value)));
}

function into(task) {
  past.push({ task: taskField.value, now, stored });
  stored = task.taskid ?? "";
  now = null;
  taskField.value = JSON.stringify(tidied(task), null, 2);
  byId("back").disabled = false;
  isAuto = true;
  return step();
}

async function back() {
  const before = past.pop();
  if (!before) {
    return;
  }
  ({ now, stored } = before);
  taskField.value = before.task;
  byId("back").disabled = !past.length;
  isAuto = true;
  if (now) {
    await show();
  } else {
    byId("brought").hidden = true;
    say("");
  }
  (past.length ? byId("back") : byId("step")).focus();
}

async function tryOut() {
  await busy("Trying the text over the last pages of each callback", async () => {
    const { status, found } = await post("try", { text: editor.text() });
    if (status !== 200) {
      say(found.error, true);
      return;
    }
    showTrial(found);
  });
}

// Showing a step

function words(found) {
  const { answer } = found;
  const source = answer ? ` Read from ${answer.source}: ${answer.status}, ${answer.bytes.toLocaleString("en")} bytes, ${answer.at.slice(11, 19)} UTC.` : "";
  const wrong = found.why ? `${found.why}.` : "Done.";
  return `${wrong} ${found.ms} ms.${source}${answer?.error ? ` ${answer.error}.` : ""}`;
}

function count(name, number) {
  byId(`tab-${name}`).querySelector(".number").textContent = number ? ` ${number}` : "";
}

function leftOut(number, what) {
  return number ? [made("p", `${number.toLocaleString("en")} more ${what} are not shown.`)] : [];
}

function follows(found) {
  const list = made("ul", "", { class: "follows" });
  for (const task of found.follows) {
    const row = made("li");
    const about = made("div");
    about.append(made("b", task.process?.callback ?? "__call__"), " ", made("span", task.url, { class: "id" }));
    const button = made("button", "Step into", { type: "button", class: "second", "aria-label": `Step into ${task.url}` });
    button.addEventListener("click", () => into(task));
    const whole = made("details");
    whole.append(made("summary", "Task"), pre(JSON.stringify(tidied(task), null, 2), `Task of ${task.url}`));
    row.append(about, button, whole);
    list.append(row);
  }
  return found.follows.length ? [list, ...leftOut(found.left_out.follows, "follows")] : [made("p", "No follows.")];
}

function messages(found) {
  const all = found.messages.map((one) => pre(JSON.stringify(one.message, null, 2), `Message to ${one.script}`));
  const shown = all.flatMap((one, place) => [made("p", `To ${found.messages[place].script}`), one]);
  return all.length ? [...shown, ...leftOut(found.left_out.messages, "messages")] : [made("p", "No messages.")];
}

function results(found) {
  const all = found.results.map((text, place) => pre(text, `Result ${place + 1}`));
  return all.length ? [...all, ...leftOut(found.left_out.results, "results")] : [made("p", "No result.")];
}

function html(found) {
  const { answer } = found;
  if (!answer) {
    return [made("p", "This call needs no page.")];
  }
  const about = made("p", `${answer.url} ${answer.type}`);
  return [about, answer.text ? pre(answer.text, "The page as text") : made("p", "It is empty, or no text.")];
}

async function show() {
  byId("brought").hidden = false;
  byId("panel-follows").replaceChildren(...follows(now));
  byId("panel-messages").replaceChildren(...messages(now));
  byId("panel-result").replaceChildren(...results(now));
  byId("panel-log").replaceChildren(now.log ? pre(now.log, "Log") : made("p", "Nothing was printed or logged."));
  byId("panel-html").replaceChildren(...html(now));
  count("follows", now.follows.length + now.left_out.follows);
  count("messages", now.messages.length + now.left_out.messages);
  count("result", now.results.length + now.left_out.results);
  count("log", now.log ? now.log.trimEnd().split("\n").length : 0);
  say(words(now), Boolean(now.why));
  if (isAuto || !shownTab || now.why) {
    const auto = now.why ? "log" : now.follows.length ? "follows" : now.results.length ? "result" : "log";
    await choose(auto);
  } else {
    await choose(shownTab);
  }
}

function showTrial(found) {
  const rows = found.pages.map((one) => {
    const row = made("tr");
    const about = made("td", "", { class: "long" });
    about.append(made("b", one.callback), " ", made("span", one.url, { class: "id" }));
    const what = made("td", one.why ? `it fails: ${one.why}` : "", { class: "long" });
    for (const [name, before, after] of one.fields) {
      what.append(made("p", `${name}: ${before} → ${after}`));
    }
    if (!one.why && !one.fields.length) {
      what.textContent = one.follows ? `the same, ${one.follows} follows` : "the same";
    }
    row.append(about, made("td", one.is_worse ? "worse" : "", one.is_worse ? { class: "failed" } : {}), what);
    return row;
  });
  const frame = made("div", "", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Pages of the trial" });
  const table = made("table");
  const head = made("tr");
  head.append(...["Page", "", "Before and after"].map((one) => (one ? made("th", one, { scope: "col" }) : made("td"))));
  const top = made("thead");
  top.append(head);
  const body = made("tbody");
  body.append(...rows);
  table.append(top, body);
  frame.append(table);
  const number = found.pages.length;
  const text = number
    ? `${number} ${number === 1 ? "page" : "pages"}, ${found.worse} of them worse than before; no site was asked.`
    : "The archive has no page of this script on this machine yet.";
  const end = found.whole ? "" : " The time was over before the last page.";
  byId("brought").hidden = false;
  byId("tab-try").hidden = false;
  byId("panel-try").replaceChildren(...(number ? [frame] : [made("p", text)]));
  count("try", number);
  say(text + end, found.worse > 0);
  choose("try");
}

// Tabs

async function choose(name, hasFocus = false) {
  shownTab = name;
  for (const one of TABS) {
    const tab = byId(`tab-${one}`);
    tab.setAttribute("aria-selected", String(one === name));
    tab.tabIndex = one === name ? 0 : -1;
    byId(`panel-${one}`).hidden = one !== name;
  }
  if (hasFocus) {
    byId(`tab-${name}`).focus();
  }
  if (name === "web") {
    await showPage();
  }
}

for (const name of TABS) {
  const tab = byId(`tab-${name}`);
  tab.addEventListener("click", () => {
    isAuto = name !== "html" && name !== "web";
    choose(name);
  });
  tab.addEventListener("keydown", (event) => {
    const there = TABS.filter((one) => !byId(`tab-${one}`).hidden);
    const place = there.indexOf(name);
    const to = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: -1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      const next = there.at(to % there.length);
      isAuto = next !== "html" && next !== "web";
      choose(next, true);
    }
  });
}

// The page, and the selector helper

const page = new ShownPage(byId("web"), (selector) => {
  byId("selector").value = selector;
  mark();
});
let shownText = null;

async function showPage() {
  const text = now?.answer?.text ?? "";
  if (text !== shownText) {
    shownText = text;
    await page.show(text);
  }
  mark();
}

function mark() {
  const selector = byId("selector").value;
  const number = page.source ? page.mark(selector) : 0;
  const words = number === null ? "This is not a CSS selector." : `${number} ${number === 1 ? "element" : "elements"}`;
  byId("matched").textContent = selector.trim() ? words : page.isCut ? "The page is longer than what is shown." : "";
}

byId("selector").addEventListener("input", mark);
byId("helper").addEventListener("submit", (event) => {
  event.preventDefault();
  const selector = byId("selector").value.trim();
  if (selector) {
    const quote = selector.includes("'") ? '"' : "'";
    const text = selector.replaceAll("\\", "\\\\").replaceAll(quote, `\\${quote}`).replaceAll("\n", " ");
    editor.insert(`response.doc(${quote}${text}${quote})`);
  }
});

// Saving

function showStatus(status) {
  const shown = byId("status").querySelector(".state");
  if (shown?.textContent !== status) {
    byId("status").replaceChildren(made("b", status)); // as CHECKING, after an edit of one that ran
  }
}

function showConflict(found) {
  const box = made("div", "", { class: "notice failed", role: "alert" });
  const keep = made("button", "Save mine over it", { type: "button", class: "second" });
  keep.addEventListener("click", () => saveText());
  const label = `Edition ${found.number}, by ${found.who || "hand"}, ${found.time}`;
  box.append(made("p", `${found.error}. Your text is in the editor, and is not saved.`), made("p", label), pre(found.theirs, label), keep);
  byId("conflict").replaceChildren(box);
  keep.focus();
}

async function saveText() {
  await busy("Saving", async () => {
    const text = editor.text();
    const { seen, edition, why } = save.elements;
    const { status, found } = await post("save", { text, seen: seen.value, edition: edition.value, why: why.value });
    if (status === 409 || status === 200) {
      seen.value = found.seen;
      edition.value = found.edition;
    }
    if (status === 409) {
      showConflict(found);
      say("Somebody else has saved this script meanwhile.", true);
    } else if (status === 200) {
      hasChanged = editor.text() !== text;
      why.value = "";
      byId("conflict").replaceChildren();
      byId("saved").textContent = `Saved as edition ${found.edition}.`;
      showStatus(found.status);
      say("");
    } else {
      say(found.error, true);
    }
  });
}

save.addEventListener("submit", (event) => {
  event.preventDefault();
  saveText();
});
byId("step").addEventListener("click", () => step());
byId("again").addEventListener("click", () => step(true));
byId("back").addEventListener("click", back);
byId("try").addEventListener("click", tryOut);
document.addEventListener(
  "keydown",
  (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) {
      return;
    }
    const act = { Enter: () => step(), s: saveText }[event.key];
    if (act) {
      event.preventDefault();
      event.stopPropagation();
      act();
    }
  },
  true,
);
window.addEventListener("beforeunload", (event) => {
  if (hasChanged) {
    event.preventDefault();
  }
});
