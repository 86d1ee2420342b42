// Tokens: shows the secret of a new one, this once; when the dialog closes, nothing of it is left in the page.
const dialog = document.getElementById("new-token");
const secret = document.getElementById("new-token-secret");
const copy = document.getElementById("new-token-copy");

dialog.addEventListener("close", () => {
  secret.textContent = "";
  copy.dataset.copy = "";
});

document.getElementById("token-form")?.addEventListener("form:done", (event) => {
  event.preventDefault();
  const { name, token } = event.detail;
  document.getElementById("new-token-name").textContent = name;
  secret.textContent = token;
  copy.dataset.copy = token;
  dialog.showModal();
  for (const field of event.target.querySelectorAll("input")) field.value = "";
});
