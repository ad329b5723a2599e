// Refreshes what is running: every element with an id and `data-refresh` (seconds) is replaced by that of the same page,
// fetched anew. Every page works without it. It rests while the page is hidden, or someone types, ticks or selects there.

const LONGEST = 120; // seconds between two tries while the server does not answer
let failures = 0;
let timer;

function parts() {
  return [...document.querySelectorAll("[data-refresh][id]")];
}

function isInUse(part) {
  const selection = document.getSelection();
  const ticked = part.querySelector("input:checked");
  const chosen = selection && !selection.isCollapsed && selection.containsNode(part, true);
  return ticked || chosen || (part.contains(document.activeElement) && document.activeElement.matches("input, select, textarea"));
}

// The way to an element from its part, by numbers of children: the same one has the focus afterwards.
function wayTo(element, part) {
  const way = [];
  for (let one = element; one !== part; one = one.parentElement) {
    way.unshift([...one.parentElement.children].indexOf(one));
  }
  return way;
}

function follow(way, part) {
  return way.reduce((one, place) => one?.children[place], part);
}

function replace(part, fresh) {
  if (part.innerHTML === fresh.innerHTML) {
    part.dataset.refresh = fresh.dataset.refresh ?? "";
    return;
  }
  const focused = part.contains(document.activeElement) && part !== document.activeElement ? document.activeElement : null;
  const target = focused?.id || focused?.getAttribute("href");
  const way = focused && wayTo(focused, part);
  const scrolled = [...part.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
  part.replaceChildren(...fresh.childNodes);
  if ("refresh" in fresh.dataset) {
    part.dataset.refresh = fresh.dataset.refresh;
  } else {
    delete part.dataset.refresh; // it has ended
  }
  part.querySelectorAll(".scroll").forEach((one, place) => {
    one.scrollLeft = scrolled[place] ?? 0;
  });
  if (focused) {
    const same = [...part.querySelectorAll("a[href], [id]")].find((one) => target === (one.id || one.getAttribute("href")));
    (same ?? follow(way, part))?.focus({ preventScroll: true });
  }
}

async function refresh() {
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, redirect: "error" });
    if (!answer.ok) {
      throw new Error(answer.statusText);
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of parts().filter((one) => !isInUse(one))) {
      const fresh = page.getElementById(part.id);
      if (fresh) {
        replace(part, fresh);
      }
    }
    const written = document.querySelector("#written");
    const now = page.querySelector("#written");
    if (written && now) {
      written.replaceChildren(...now.childNodes);
    }
    failures = 0;
  } catch {
    failures += 1; // what is shown stays, with its time in the footer
  }
  plan();
}

function plan() {
  clearTimeout(timer);
  const seconds = parts().map((one) => Number(one.dataset.refresh)).filter((one) => one > 0);
  if (seconds.length && !document.hidden) {
    timer = setTimeout(refresh, 1000 * Math.min(Math.min(...seconds) * 2 ** failures, LONGEST));
  }
}

document.addEventListener("visibilitychange", () => {
  clearTimeout(timer);
  if (!document.hidden && parts().length) {
    refresh();
  }
});
plan();
