// Early: keeps clicks and submits that modules will handle until the modules are there. A classic script in <head>.
(() => {
  const early = { waiting: [], isReady: false };
  window.queuectlEarly = early;

  function keep(event, replay) {
    event.preventDefault();
    event.stopImmediatePropagation();
    early.waiting.push(replay);
  }

  addEventListener(
    "click",
    (event) => {
      if (early.isReady) return;
      const element = event.target.closest?.("[data-act], [data-copy], [data-module]:not(form)");
      if (element) keep(event, () => element.isConnected && element.click());
    },
    true,
  );
  addEventListener(
    "submit",
    (event) => {
      const form = event.target;
      if (early.isReady || !form.matches("form[data-module], form[data-act]")) return;
      const by = event.submitter;
      keep(event, () => form.isConnected && form.requestSubmit(by));
    },
    true,
  );
  early.ready = () => {
    early.isReady = true;
    for (const replay of early.waiting.splice(0)) replay();
  };
})();
