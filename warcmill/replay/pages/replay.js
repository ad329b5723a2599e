// Starts the frame of an archived page, by pywb's ContentFrame, and keeps its banner true as a reader follows links.
const asked = document.body.dataset;
const captures = document.getElementById("captures");
const time = /^(....)(..)(..)(..)(..)(..)$/;

function show(url, stamp) {
  document.getElementById("url").firstElementChild.textContent = url;
  document.getElementById("time").textContent = time.test(stamp) ? stamp.replace(time, "$1-$2-$3 $4:$5:$6 UTC") : "";
  if (captures) {
    captures.href = captures.href.replace(/q=.*$/, `q=${encodeURIComponent(url)}`);
  }
}

window.WBBanner = {
  init() {},
  onMessage({ data }) {
    if (data.wb_type === "load" && data.url) {
      show(String(data.url), String(data.ts));
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
