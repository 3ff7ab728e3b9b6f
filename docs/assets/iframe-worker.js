// Lets the search work on pages that are opened from a disk, where browsers start no workers:
// the worker's script runs in a hidden frame instead. Loaded by every page; does nothing elsewhere.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      inside.importScripts = (...urls) =>
        urls.reduce((done, src) => done.then(() => this.load(src)), Promise.resolve());
      this.ready = this.load(String(url));
    }
    load(src) {
      const inside = this.frame.contentDocument;
      return new Promise((resolve, reject) => {
        const script = inside.createElement("script");
        script.src = new URL(src, location.href).href;
        script.onload = resolve;
        script.onerror = reject;
        inside.body.appendChild(script);
      });
    }
    postMessage(data) {
      this.ready.then(() =>
        this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })),
      );
    }
    terminate() {
      this.frame.remove();
    }
  };
}
