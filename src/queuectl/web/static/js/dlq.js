// DLQ: tries one job of a group, and goes to the page that shows what becomes of it.
import { send, whileBusy } from "./acts.js";
import { problem } from "./notices.js";

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-try]");
  if (!button || button.disabled) return;
  whileBusy(button, async () => {
    try {
      const meant = JSON.parse(button.dataset.try);
      const told = await send("POST", "/api/v1/dlq/retry", { ...meant, canary: true });
      const address = new URL(location.href);
      address.searchParams.set("canary", told.canary.id);
      address.searchParams.set("error", meant.error);
      location.assign(address);
    } catch (error) {
      problem(error);
    }
  });
});
