// SPDX-License-Identifier: Apache-2.0
//
// node server.js PORT POSTGRES-FOLDER REDIS-SOCKET: TechEmpower's database tests, and a page with one Redis GET. Uses the module
// http, `pg` with prepared statements, and `ioredis`; one process.

'use strict';

const http = require('node:http');
const { Pool } = require('pg');
const Redis = require('ioredis');

const [port, folder, redisPath] = process.argv.slice(2);
const ROWS = 10000;
const pool = new Pool({ host: folder, user: 'contest', database: 'postgres', max: 16 });
const redis = redisPath ? new Redis({ path: redisPath, enableAutoPipelining: true }) : null;
const cache = new Map();

const READ = { name: 'read', text: 'SELECT id, randomnumber FROM world WHERE id = $1' };
const FORTUNES = { name: 'fortunes', text: 'SELECT id, message FROM fortune' };
const UPDATE = {
    name: 'update',
    text: 'UPDATE world SET randomnumber = new.number FROM (SELECT unnest($1::int[]) AS id, unnest($2::int[]) AS number ORDER BY 1) '
        + 'AS new WHERE world.id = new.id',
};
const REFERENCES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

const anyNumber = () => 1 + Math.floor(Math.random() * ROWS);
const escape = (text) => text.replace(/[&<>"']/g, (c) => REFERENCES[c]);

function countAsked(query, name) {
    const match = new RegExp(`(?:^|&)${name}=(\\d+)(?:&|$)`).exec(query);
    return match ? Math.min(Math.max(Number(match[1]), 1), 500) : 1;
}

async function readRow() {
    const { rows } = await pool.query({ ...READ, values: [anyNumber()] });
    return { id: rows[0].id, randomNumber: rows[0].randomnumber };
}

const readRows = (n) => Promise.all(Array.from({ length: n }, readRow));

function say(response, type, text) {
    response.writeHead(200, { Server: 'Node.js', 'Content-Type': type, 'Content-Length': Buffer.byteLength(text) });
    response.end(text);
}

const sayJSON = (response, value) => say(response, 'application/json', JSON.stringify(value));

async function fortunes(response) {
    const { rows } = await pool.query(FORTUNES);
    rows.push({ id: 0, message: 'Additional fortune added at request time.' });
    rows.sort((a, b) => (a.message < b.message ? -1 : 1));
    const table = rows.map((row) => `<tr><td>${row.id}</td><td>${escape(row.message)}</td></tr>`).join('');
    say(response, 'text/html; charset=utf-8', '<!DOCTYPE html><html><head><title>Fortunes</title></head><body><table>'
        + `<tr><th>id</th><th>message</th></tr>${table}</table></body></html>`);
}

async function updates(response, query) {
    const rows = await readRows(countAsked(query, 'queries'));
    for (const row of rows) {
        row.randomNumber = anyNumber();
    }
    rows.sort((a, b) => a.id - b.id);
    const last = rows.filter((row, i) => row.id !== rows[i + 1]?.id); // if a row occurs twice, the last one counts
    await pool.query({ ...UPDATE, values: [last.map((row) => row.id), last.map((row) => row.randomNumber)] });
    sayJSON(response, rows);
}

function cached(response, query) {
    sayJSON(response, Array.from({ length: countAsked(query, 'count') }, () => cache.get(anyNumber())));
}

const ROUTES = {
    '/json': (response) => sayJSON(response, { message: 'Hello, World!' }),
    '/plaintext': (response) => say(response, 'text/plain', 'Hello, World!'),
    '/db': async (response) => sayJSON(response, await readRow()),
    '/queries': async (response, query) => sayJSON(response, await readRows(countAsked(query, 'queries'))),
    '/fortunes': fortunes,
    '/updates': updates,
    '/cached-queries': cached,
    '/page': async (response) => say(response, 'text/html; charset=utf-8', `<!DOCTYPE html><p>${escape(await redis.get('message'))}</p>\n`),
};

async function answer(request, response) {
    const [path, query = ''] = request.url.split('?');
    const route = ROUTES[path];
    try {
        if (route) {
            await route(response, query);
        } else {
            response.writeHead(404).end();
        }
    } catch (error) {
        console.error(error);
        response.writeHead(500).end();
    }
}

async function serve() {
    const { rows } = await pool.query('SELECT id, randomnumber FROM world');
    for (const row of rows) {
        cache.set(row.id, { id: row.id, randomNumber: row.randomnumber });
    }
    const server = http.createServer(answer);
    server.keepAliveTimeout = 65000;
    server.listen({ host: '127.0.0.1', port: Number(port), backlog: 4096 });
}

serve();
