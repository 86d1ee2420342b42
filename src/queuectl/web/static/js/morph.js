// Morph: makes one piece of the page equal to a newer one by changing no more than what differs.
//
// Children are matched by data-key, then by id, then by place and name. What a person did stays: focus, what they typed,
// ticked or opened, and the text they marked. An element with data-keep is left alone.
const KEPT = { INPUT: ["value", "checked"], TEXTAREA: ["value"], SELECT: [], OPTION: ["selected"] };
const OWN_CLASSES = ["current", "selected"];
const LOCAL = new Set(["open", "aria-busy", "data-word"]);

export function morph(old, fresh) {
  morphAttributes(old, fresh);
  morphChildren(old, fresh);
}

function morphAttributes(old, fresh) {
  const local = isLocal(old, fresh);
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !local(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    const wanted = name === "class" ? withOwnClasses(old, value) : value;
    if (!local(name) && old.getAttribute(name) !== wanted) old.setAttribute(name, wanted);
  }
}

// The classes the server gives, and those that say what a person does with a row.
function withOwnClasses(element, classes) {
  const own = OWN_CLASSES.filter((name) => element.classList.contains(name) && !classes.split(" ").includes(name));
  return own.length ? `${classes} ${own.join(" ")}`.trim() : classes;
}

// What was changed here and is not the server's to say.
function isLocal(element, fresh) {
  const kept = KEPT[element.nodeName] ?? [];
  return (name) =>
    kept.includes(name) ||
    (name === "open" && (element.nodeName === "DETAILS" || element.nodeName === "DIALOG")) ||
    (name !== "open" && LOCAL.has(name)) ||
    (name === "class" && !fresh.hasAttribute("class") && OWN_CLASSES.some((each) => element.classList.contains(each))) ||
    ((name === "aria-selected" || name === "tabindex") && element.matches("[data-key]"));
}

function morphChildren(old, fresh) {
  const keyed = new Map();
  for (const child of old.children) {
    const key = keyOf(child);
    if (key) keyed.set(key, child);
  }
  const staying = new Set([...fresh.children].map(keyOf));
  for (const [key, child] of keyed) if (!staying.has(key)) drop(child);
  let place = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const match = matchOf(wanted, place, keyed);
    if (match) {
      if (match !== place) place = dropUntil(match, place);
      if (match !== place) old.insertBefore(match, place);
      else place = place.nextSibling;
      update(match, wanted);
    } else {
      old.insertBefore(document.importNode(wanted, true), place);
    }
  }
  while (place) {
    const next = place.nextSibling;
    drop(place);
    place = next;
  }
}

// Remove what has no key and stands before a node, rather than move that node: one that is moved loses the focus.
function dropUntil(node, place) {
  while (place && place !== node && !(place.nodeType === Node.ELEMENT_NODE && keyOf(place))) {
    const next = place.nextSibling;
    drop(place);
    place = next;
  }
  return place;
}

function drop(node) {
  if (!(node.nodeType === Node.ELEMENT_NODE && "keep" in node.dataset)) node.remove();
}

export function update(match, wanted) {
  if (match.nodeType !== Node.ELEMENT_NODE) {
    if (match.nodeValue !== wanted.nodeValue) match.nodeValue = wanted.nodeValue;
  } else if (!("keep" in match.dataset) && !match.isEqualNode(wanted)) {
    morph(match, wanted);
  }
}

function matchOf(wanted, place, keyed) {
  const key = wanted.nodeType === Node.ELEMENT_NODE ? keyOf(wanted) : "";
  if (key) {
    const found = keyed.get(key);
    return found && found.nodeName === wanted.nodeName ? found : null;
  }
  // Skip nothing: a node without a key is matched by its place, or made anew.
  if (place && place.nodeType === wanted.nodeType && place.nodeName === wanted.nodeName) {
    return place.nodeType === Node.ELEMENT_NODE && keyOf(place) ? null : place;
  }
  return null;
}

export function keyOf(element) {
  return element.dataset?.key !== undefined ? `key ${element.dataset.key}` : element.id ? `id ${element.id}` : "";
}

// As morph, for a list that must not move: rows that are still there change in place, those that are new are held
// back, those that are gone stay, marked. Returns how many were held back.
export function morphHeld(old, fresh) {
  const wanted = new Map([...fresh.children].map((child) => [keyOf(child), child]));
  const shown = [...old.children].filter((child) => keyOf(child));
  if (!shown.length) {
    morph(old, fresh);
    return 0;
  }
  const lastKept = shown.findLastIndex((row) => wanted.has(keyOf(row)));
  shown.forEach((row, place) => {
    const next = wanted.get(keyOf(row));
    if (next) {
      row.removeAttribute("data-gone");
      update(row, next);
    } else if (place < lastKept || wanted.size === 0) {
      row.setAttribute("data-gone", ""); // those at the end may only have been pushed to the next page
    }
  });
  const known = new Set(shown.map(keyOf));
  return [...wanted.keys()].filter((key) => key && !known.has(key)).length;
}
