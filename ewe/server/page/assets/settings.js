// What is asked for besides the question. Kept in this browser, but for the key (this tab only) and the passages.
const DEFAULTS = { max_tokens: 256, temperature: 0, top_p: 1, seed: '', closed_world: '', pace: '30' };
const STORE = 'ewe-page-settings';
const settingOf = (name) => byId(`set-${name}`);

function stored(storage, name) {
  try { return storage.getItem(name); } catch { return null; } // a browser may forbid storage
}
function store(storage, name, value) {
  try {
    if (value) storage.setItem(name, value);
    else storage.removeItem(name);
  } catch { /* the settings hold until the page is closed */ }
}

const Settings = {
  start() {
    let known = {};
    try { known = JSON.parse(stored(localStorage, STORE) ?? '{}'); } catch { /* not ours */ }
    this.fill({ ...DEFAULTS, ...known });
    byId('key').value = stored(sessionStorage, 'ewe-key') ?? '';
    byId('settings-panel').addEventListener('input', () => this.keep());
    byId('settings-toggle').addEventListener('click', () => this.open(byId('settings-panel').hidden));
    byId('reset').addEventListener('click', () => {
      this.fill(DEFAULTS);
      settingOf('documents').value = '';
      this.keep();
    });
    this.tell();
  },

  open(shown) {
    byId('settings-panel').hidden = !shown;
    byId('settings-toggle').setAttribute('aria-expanded', String(shown));
  },

  fill(values) {
    for (const name of Object.keys(DEFAULTS)) settingOf(name).value = values[name];
    for (const name of ['pace', 'closed_world']) if (settingOf(name).selectedIndex < 0) settingOf(name).value = DEFAULTS[name];
  },

  keep() {
    store(localStorage, STORE, JSON.stringify(Object.fromEntries(Object.keys(DEFAULTS).map((name) => [name, settingOf(name).value]))));
    store(sessionStorage, 'ewe-key', this.key);
    this.tell();
  },

  get key() { return byId('key').value.trim(); },
  get pace() { return Number(settingOf('pace').value); },
  // Whether what the sources do not bear is refuted; nothing leaves it to the server.
  get closedWorld() {
    const { value } = settingOf('closed_world');
    return value ? { closed_world: value === 'true' } : {};
  },

  // A line beside the button, so that nobody wonders about settings of another day.
  tell() {
    const changed = ['max_tokens', 'temperature', 'top_p', 'seed'].filter((name) => settingOf(name).value !== String(DEFAULTS[name]))
      .map((name) => `${name.replace('_', ' ')} ${settingOf(name).value}`);
    const { value, selectedOptions } = settingOf('closed_world');
    if (value) changed.push(`what is not borne out ${selectedOptions[0].text}`);
    const own = this.documents.length;
    if (own) changed.push(`${count(own, 'passage')} of your own`);
    byId('changed').textContent = changed.join(', ');
  },

  get documents() {
    return settingOf('documents').value.split(/\n\s*\n/).map((part) => part.trim()).filter(Boolean).map((part) => {
      const [, title, text] = /^#\s*(.+)\n([^]+)$/.exec(part) ?? [];
      return title ? { title: title.trim(), text: text.trim() } : { text: part };
    });
  },

  // The request for a conversation's next answer; fields that are empty are left to the server.
  request(messages, model) {
    const fields = { ...(model ? { model } : {}), messages, stream: true };
    fields.ewe = { events: true, ...(engine?.unchecked ? {} : this.closedWorld) };
    for (const name of ['max_tokens', 'temperature', 'top_p', 'seed']) {
      const { value } = settingOf(name);
      if (value !== '') fields[name] = Number(value);
    }
    if (this.documents.length) fields.documents = this.documents;
    return fields;
  },
};
