// What the scripts of all pages share. Everything from outside enters the page as text, never as markup.

/** The JSON value that the page brought under this name; null where it brought none. */
const data = (name) => {
  const block = document.getElementById(`data-${name}`);
  return block ? JSON.parse(block.textContent) : null;
};

// As gate.security.escape has it: control, direction-changing and invisible characters.
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\ud800-\udfff\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u00ad\u034f\u115f\u1160\u180e\u200b\u2028\u2029\u2060-\u2064\u206a-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\p{Noncharacter_Code_Point}\u{e0000}-\u{e0fff}]/gu;

const shownCode = (found) => {
  const code = found.codePointAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return '␡';
  if ((code >= 0x80 && code <= 0x9f) || (code >= 0xd800 && code <= 0xdfff) || (code >= 0xfdd0 && code <= 0xfdef) || (code & 0xfffe) === 0xfffe) return '\ufffd';
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`;
};

/** The text with characters that would hide or reorder something made visible. */
const visible = (text) => String(text).replaceAll('\r\n', '\n').replace(UNSAFE, shownCode);

/** A new element. Attributes are ours; children are elements, or text that may be anybody's. */
const element = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'on') for (const [event, act] of Object.entries(value)) made.addEventListener(event, act);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat(3)) {
    if (child !== null && child !== undefined && child !== '') made.append(child instanceof Node ? child : visible(child));
  }
  return made;
};

const SEPARATORS = /(?<=[_./:@-])(?<!\d[./:@-])(?=[^_./:@\-\s])|(?<=[a-z])(?=[A-Z])/u;

/** A name that may be broken after its separators. */
const breakable = (name) => visible(name).split(SEPARATORS).flatMap((piece, at) => (at ? [element('wbr'), document.createTextNode(piece)] : [document.createTextNode(piece)]));

// The scheme: the system's, unless the reader chose one.
const THEMES = ['auto', 'light', 'dark'];
const theme = document.getElementById('theme');
const kept = () => {
  try { return localStorage.getItem('agent-gate-theme') || 'auto'; } catch { return 'auto'; }
};
const wear = (name) => {
  if (name === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  theme.textContent = `Theme: ${name}`;
};
if (theme) {
  let worn = THEMES.includes(kept()) ? kept() : 'auto';
  wear(worn);
  theme.hidden = false;
  theme.addEventListener('click', () => {
    worn = THEMES[(THEMES.indexOf(worn) + 1) % THEMES.length];
    wear(worn);
    try { localStorage.setItem('agent-gate-theme', worn); } catch { /* a page without storage forgets */ }
  });
}
