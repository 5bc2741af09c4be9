// Texts. Whoever may create a pod chooses what is in them, so they become text nodes only, with everything that would
// not be seen, or would change how its neighbours are seen, spelled out.

const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;
const STACKED = /(\p{M}{2})\p{M}+/gu;

export function shown(value, length = 300) {
  let text = typeof value === "string" ? value : String(value ?? "");
  if (text.length > length) text = `${text.slice(0, length - 1).replace(/[\ud800-\udbff]$/, "")}…`;
  return text.replace(UNSEEN, spelled).replace(STACKED, "$1…");
}

function spelled(unseen) {
  const code = unseen.codePointAt(0).toString(16).padStart(4, "0");
  return code.length > 4 ? `\\u{${code}}` : `\\u${code}`;
}

// Makes an element; `what` are properties, children are elements or texts.
export function make(tag, what = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(what)) {
    if (name.includes("-") || name === "role" || name === "scope") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// A button that reads as a link. Its key is its text, by which it is found again when what is around it is made anew.
export function link(text, opened, length = 160) {
  const button = make("button", { type: "button", className: "link" }, shown(text, length));
  button.dataset.key = text;
  button.addEventListener("click", opened);
  return button;
}

export function put(id, text) {
  const element = document.getElementById(id);
  if (element.textContent !== text) element.textContent = text;
}

let saying = 0;

// Tells a screen reader.
export function say(text) {
  clearTimeout(saying);
  saying = setTimeout(() => put("said", text), 150);
}

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 0.001) return `${Math.round(value * 1e6)} µs`;
  if (value < 1) return `${short(value * 1000)} ms`;
  if (value < 120) return `${short(value)} s`;
  return age(value);
}

export function age(value) {
  const whole = Math.max(0, Math.floor(value));
  if (whole < 120) return `${whole} s`;
  if (whole < 7200) return `${Math.floor(whole / 60)} min`;
  if (whole < 172800) return `${Math.floor(whole / 3600)} h`;
  return `${Math.floor(whole / 86400)} d`;
}

export function short(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 100 || Number.isInteger(value)) return String(Math.round(value));
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

export function count(value, one, many = `${one}s`) {
  return `${value.toLocaleString("en")} ${value === 1 ? one : many}`;
}

export function clock(at) {
  return new Date(at * 1000).toTimeString().slice(0, 8);
}

const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];

export function amount(resource, value) {
  if (resource === "cpu") return `${short(value / 1000)} cpu`;
  if (resource === "memory" || resource === "ephemeral-storage" || resource.startsWith("hugepages-")) {
    let unit = 0;
    while (value >= 1024 && unit < BINARY.length - 1) {
      value /= 1024;
      unit += 1;
    }
    return `${short(value)} ${BINARY[unit]}`;
  }
  return value.toLocaleString("en");
}
