// Memories as they are in the store: listed, searched, corrected, forgotten. All of their texts become text nodes.
const PAGE_SIZE = 50;
const ACTIONS = { use_with_uncertainty: 'doubtful for this question', disregard: 'not believed enough for this question' };
const valueOf = (id) => byId(id).value.trim();
let asked = 0; // the number of the last question: what comes later for an earlier one is dropped

function complain(error) {
  byId('alarm').hidden = !error;
  byId('alarm').textContent = error ? error.message : '';
  if (error?.status === 401) byId('key-field').hidden = false;
}

const send = (path, method, body) => call(path, valueOf('key'), {
  method, ...(body ? { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) } : {}),
}).then((response) => response.json());
const named = (values) => Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ''));
const pathOf = (memory, more = {}) =>
  `v1/memories/${encodeURIComponent(memory.id)}?${new URLSearchParams(named({ user: memory.user, agent: memory.agent, ...more }))}`;

const day = (at) => {
  const date = new Date(at * 1000);
  return Number.isNaN(date.getTime()) ? '' : date.toISOString().slice(0, 10);
};
const ownerOf = ({ user, agent }) => [user && `user ${user}`, agent && `agent ${agent}`].filter(Boolean).join(', ') || 'shared';

function facts(memory, action) {
  const { kind, id } = memory.source;
  return [
    `veracity ${number(memory.veracity)}`, `uncertainty ${number(memory.uncertainty)}`, ownerOf(memory),
    `from ${id ? `${kind}:${id}` : kind}`, day(memory.created_at),
    memory.valid_until === null ? '' : `until ${day(memory.valid_until)}`,
    memory.contradicts.length ? `contradicted by ${memory.contradicts.length}` : '', ACTIONS[action] ?? '',
  ].filter(Boolean).map((fact) => el('span', { class: 'chip' }, fact));
}

const button = (name, onclick) => el('button', { type: 'button', class: 'toggle', onclick }, name);

async function attempt(work, said) {
  try {
    await work();
    complain(null);
    byId('said').textContent = said;
  } catch (error) {
    complain(error);
  }
}

// One memory; its buttons change only this item.
function item(memory, action = '') {
  const node = el('li', { class: 'card' });
  const show = (now) => node.replaceChildren(
    el('p', { class: 'text' }, now.content), el('p', { class: 'chips' }, facts(now, action)),
    el('p', { class: 'ask-row' }, button('Correct', () => edit(now)), button('Forget', () => confirm(now))));
  const edit = (now) => {
    const box = el('textarea', { rows: 2, 'aria-label': 'What it should say', maxlength: 8192 });
    box.value = now.content;
    const save = () => attempt(async () => show(await send(`v1/memories/${encodeURIComponent(now.id)}`, 'PATCH',
      { content: box.value.trim(), user: now.user, agent: now.agent })), 'Corrected; its history keeps what it said before.');
    node.replaceChildren(box, el('p', { class: 'ask-row' }, button('Save', save), button('Cancel', () => show(now))));
    box.focus();
  };
  const confirm = (now) => {
    const forget = () => attempt(async () => {
      await send(pathOf(now, { scrub: 'true' }), 'DELETE');
      node.remove();
    }, 'Forgotten, with its history.');
    const yes = button('Forget it for good', forget);
    node.lastChild.replaceChildren(yes, button('Keep it', () => show(now)));
    yes.focus();
  };
  show(memory);
  return node;
}

function drawOwners(owners) {
  byId('owners').replaceChildren(...owners.map((owner) => button(`${ownerOf(owner)}: ${owner.memories}`, () => {
    for (const name of ['user', 'agent']) byId(name).value = owner[name];
    byId('query').value = '';
    list();
  })));
}

async function list(offset = 0) {
  const mine = ++asked;
  await attempt(async () => {
    const wanted = named({ user: valueOf('user'), agent: valueOf('agent'), offset, limit: PAGE_SIZE });
    const page = await send(`v1/memories?${new URLSearchParams(wanted)}`, 'GET');
    if (mine !== asked) return;
    if (!offset) byId('memories').replaceChildren();
    byId('memories').append(...page.data.map((memory) => item(memory)));
    drawOwners(page.owners);
    byId('more').hidden = !page.has_more;
    byId('more').onclick = () => list(offset + page.data.length);
  }, '');
  if (mine === asked) byId('said').textContent = byId('memories').children.length ? '' : 'There are none.';
}

async function search(query) {
  const mine = ++asked;
  await attempt(async () => {
    const found = await send('v1/memories/search', 'POST', { query, user: valueOf('user'), agent: valueOf('agent'), top_k: 20 });
    if (mine !== asked) return;
    byId('memories').replaceChildren(...[...found.data, ...found.disregarded].map((hit) => item(hit.memory, hit.action)));
    byId('more').hidden = true;
  }, '');
  if (mine === asked) byId('said').textContent = byId('memories').children.length ? '' : 'Nothing is found.';
}

const show = () => (valueOf('query') ? search(valueOf('query')) : list());
byId('ask').addEventListener('submit', (event) => {
  event.preventDefault();
  show();
});
show();
