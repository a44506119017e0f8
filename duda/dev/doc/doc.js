// All data of the page comes from the OpenAPI document above this script.
const api = JSON.parse(document.getElementById('api').textContent);
const base = new URLSearchParams(location.search).get('base') || location.origin;

function add(to, name, text, more) {
  const e = Object.assign(document.createElement(name), more);
  if (text) e.textContent = text;
  to.append(e);
  return e;
}

function resolve(schema) {
  return schema.$ref ? api.components.schemas[schema.$ref.split('/').pop()] : schema;
}

function limits(s) {
  const words = [];
  if (s.enum) words.push('one of ' + s.enum.join(', '));
  if (s.minimum !== undefined) words.push('from ' + s.minimum);
  if (s.maximum !== undefined) words.push('to ' + s.maximum);
  if (s.minLength) words.push('at least ' + s.minLength + ' characters');
  if (s.maxLength) words.push('at most ' + s.maxLength + ' characters');
  if (s.minItems) words.push('at least ' + s.minItems);
  if (s.maxItems) words.push('at most ' + s.maxItems);
  if (s.uniqueItems) words.push('without duplicates');
  if (s.pattern) words.push(s.pattern);
  if (s.description) words.push(s.description);
  return words.join(', ');
}

function type(s) {
  s = resolve(s);
  if (s.type === 'array') return 'list of ' + type(s.items);
  return s.format || s.type || 'any';
}

function row(table, name, needed, schema) {
  const tr = add(table, 'tr');
  for (const text of [name, type(schema), needed ? '' : 'optional', limits(resolve(schema))]) add(tr, 'td', text);
}

// Members of nested objects are shown with their path.
function members(table, schema, path) {
  const s = resolve(schema);
  if (path.split('.').length > 8) return; // schemas may be recursive
  if (s.type === 'array') members(table, s.items, path + '[]');
  for (const [name, member] of Object.entries(s.properties || {})) {
    const here = path ? path + '.' + name : name;
    row(table, here, (s.required || []).includes(name), member);
    members(table, member, here);
  }
}

const examples = {
  email: 'ana@example.org', uuid: '00000000-0000-4000-8000-000000000000', date: '2026-03-01',
  'date-time': '2026-03-01T12:30:00Z', uri: 'https://example.org/', decimal: '12.50',
};

function example(schema, depth = 0) {
  const s = resolve(schema);
  if (depth > 8) return null;
  if (s.enum) return s.enum[0];
  if (s.type === 'array') return [example(s.items, depth + 1)];
  if (s.type === 'object')
    return Object.fromEntries(Object.entries(s.properties || {}).map(([n, m]) => [n, example(m, depth + 1)]));
  if (s.type === 'boolean') return false;
  if (s.type === 'integer' || s.type === 'number') return Math.max(s.minimum || 0, 0);
  if (examples[s.format]) return examples[s.format];
  return s.type === 'string' ? 'text'.slice(0, s.maxLength || 4) : null;
}

function encode(type, schema) {
  const value = example(schema);
  return type === 'application/json' ? JSON.stringify(value, null, 2) : new URLSearchParams(value).toString();
}

function describe(to, op) {
  if (op.description) add(to, 'p', op.description);
  if (op.parameters) {
    add(to, 'h4', 'Parameters');
    const table = add(to, 'table');
    for (const p of op.parameters) row(table, p.name + (p.in === 'query' ? ' (query)' : ''), p.required, p.schema);
  }
  for (const [media, content] of Object.entries(op.requestBody?.content || {})) {
    if (!content.schema) continue;
    add(to, 'h4', 'Content, ' + media);
    members(add(to, 'table'), content.schema, '');
  }
  add(to, 'h4', 'Responses');
  const table = add(to, 'table');
  for (const [status, response] of Object.entries(op.responses)) {
    const tr = add(table, 'tr');
    add(tr, 'td', status);
    add(tr, 'td', response.description);
    add(tr, 'td', Object.keys(response.content || {}).join(', '));
  }
  for (const [status, response] of Object.entries(op.responses))
    for (const content of Object.values(response.content || {}))
      if (content.schema && !content.schema.$ref) {
        add(to, 'h4', 'Content of ' + status);
        members(add(to, 'table'), content.schema, '');
      }
}

function ask(form, method, path, op, fields, query, media, content) {
  const target = path.replace(/{([^}]+)}/g, (_, n) => fields[n].value.split('/').map(encodeURIComponent).join('/'));
  const search = new URLSearchParams(query ? query.value : '');
  for (const p of op.parameters || []) if (p.in === 'query' && fields[p.name].value) search.set(p.name, fields[p.name].value);
  const how = {method: method.toUpperCase()};
  if (content) Object.assign(how, {body: content.value, headers: {'Content-Type': media.value}});
  return fetch(base + target + (String(search) ? '?' + search : ''), how);
}

function show(to, method, path, op) {
  const section = add(to, 'section');
  const known = (op.parameters || []).some(p => p.in === 'query');
  add(section, 'h3', method.toUpperCase() + ' ' + path);
  add(section, 'p', op.summary);
  describe(section, op);
  const form = add(add(section, 'details', '', {open: true}), 'form');
  form.before(Object.assign(document.createElement('summary'), {textContent: 'Try it'}));
  const fields = {};
  for (const p of op.parameters || [])
    fields[p.name] = add(add(form, 'label', p.name), 'input', '', {required: p.required, name: p.name});
  const query = known ? null : add(add(form, 'label', 'query'), 'input', '', {placeholder: 'name=value&...'});
  const [kind, body] = Object.entries(op.requestBody?.content || {})[0] || [];
  const media = kind && add(add(form, 'label', 'type'), 'input', '', {value: kind});
  const content = kind && add(add(form, 'label', 'content'), 'textarea', '',
                              {rows: 6, value: body.schema ? encode(kind, body.schema) : ''});
  add(form, 'button', 'Send');
  const result = add(form, 'pre');
  form.onsubmit = async event => {
    event.preventDefault();
    try {
      const r = await ask(form, method, path, op, fields, query, media, content);
      result.textContent = r.status + ' ' + r.statusText + '\n' + [...r.headers].map(h => h.join(': ')).join('\n') +
        '\n\n' + await r.text();
    } catch (e) {
      result.textContent = String(e);
    }
  };
}

const main = document.querySelector('main');
for (const tag of [null, ...(api.tags || [])]) {
  if (tag) {
    add(main, 'h2', tag.name);
    add(main, 'p', tag.description);
  }
  for (const [path, ops] of Object.entries(api.paths))
    for (const [method, op] of Object.entries(ops))
      if ((op.tags || [])[0] === tag?.name) show(main, method, path, op);
}
