// Starts the frame of an archived page, by pywb's ContentFrame, and keeps its banner true as a reader follows links.
// pywb's pages know the URL of their capture, which may be another one of the same key; so does the header of a file.
const asked = document.body.dataset;
const captures = document.getElementById("captures");
const frame = document.getElementById("replay_iframe");
const other = document.getElementById("other");
const time = /^(....)(..)(..)(..)(..)(..)$/;

function show(url, stamp) {
  document.getElementById("url").firstElementChild.textContent = url;
  document.getElementById("time").textContent = time.test(stamp) ? stamp.replace(time, "$1-$2-$3 $4:$5:$6 UTC") : "";
  if (captures) {
    captures.href = captures.href.replace(/q=.*$/, `q=${encodeURIComponent(url)}`);
  }
}

// A URL without scheme, default port and fragment, which do not count.
function page(text) {
  try {
    const url = new URL(text);
    return decodeURI(`${url.host}${url.pathname}${url.search}`);
  } catch {
    return text;
  }
}

function compare(url, shown) {
  other.hidden = !shown || page(url) === page(shown);
  other.lastElementChild.textContent = shown;
}

// What a window knows of its capture; nothing for a file, and for a window that browsers keep from us.
function known(view) {
  try {
    return view.wbinfo;
  } catch {
    return undefined;
  }
}

async function look() {
  const view = frame.contentWindow;
  if (!known(view)) {
    const stop = new AbortController(); // a file may be long
    const answer = await fetch(frame.src, { signal: stop.signal });
    const place = answer.ok ? answer.headers.get("Content-Location") : "";
    stop.abort();
    compare(asked.url, (place || "").replace(/^.*?\/[0-9]{14}[a-z]*_?\//, ""));
  }
}

window.WBBanner = {
  init() {},
  onMessage({ data, source }) {
    if (data.wb_type === "load" && data.url) {
      show(String(data.url), String(data.ts));
      compare(String(data.url), String(known(source)?.url || ""));
    }
  },
  stillIndicatesLoading: () => false,
  updateCaptureInfo() {},
};

window.cframe = new ContentFrame({
  url: asked.url + window.location.hash,
  prefix: asked.prefix,
  request_ts: asked.time,
  iframe: "#replay_iframe",
});

window.addEventListener("load", look);
