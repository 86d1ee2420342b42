// Tokens: shows the secret of a new one, this once.
document.getElementById("token-form")?.addEventListener("form:done", (event) => {
  event.preventDefault();
  const { name, token } = event.detail;
  document.getElementById("new-token-name").textContent = name;
  document.getElementById("new-token-secret").textContent = token;
  document.getElementById("new-token-copy").dataset.copy = token;
  const dialog = document.getElementById("new-token");
  dialog.addEventListener("close", () => (document.getElementById("new-token-secret").textContent = ""), { once: true });
  dialog.showModal();
  for (const field of event.target.querySelectorAll("input")) field.value = "";
});
