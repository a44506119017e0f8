// SPDX-License-Identifier: Apache-2.0
// Files, a greeting, and typical web service responses, with only Node itself: no packages, no content cache.
'use strict';

const cluster = require('cluster');
const fs = require('fs');
const http = require('http');
const http2 = require('http2');
const path = require('path');
const { pipeline } = require('stream');

const READ_AT_ONCE = 65536;
const settings = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const TYPES = {
    '.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript', '.txt': 'text/plain',
    '.svg': 'image/svg+xml', '.png': 'image/png', '.jpg': 'image/jpeg', '.gif': 'image/gif',
    '.ico': 'image/x-icon', '.pdf': 'application/pdf',
};

function refuse(response, status) {
    const text = `${status} ${http.STATUS_CODES[status]}\n`;
    response.writeHead(status, { 'Content-Type': 'text/plain', 'Content-Length': text.length });
    response.end(text);
}

function say(request, response, type, text) {
    response.writeHead(200, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(text) });
    response.end(request.method === 'HEAD' ? undefined : text);
}

// Responses for paths that are not files.
const ROUTES = {
    [settings.dynamic]: (request, response) => say(request, response, 'text/plain', settings.hello),
    '/json': (request, response) => say(request, response, 'application/json', JSON.stringify({ message: 'Hello, World!' })),
    '/plaintext': (request, response) => say(request, response, 'text/plain', 'Hello, World!'),
};

// Returns the file of a URL's path below the root, or null.
function locate(url) {
    try {
        const name = decodeURIComponent(url.split('?', 1)[0]);
        return name.includes('\0') ? null : path.join(settings.root, path.posix.normalize('/' + name));
    } catch {
        return null;
    }
}

function sendFile(request, response, name, handle, info) {
    response.writeHead(200, {
        'Content-Type': TYPES[path.extname(name)] || 'application/octet-stream',
        'Content-Length': info.size,
        'Last-Modified': info.mtime.toUTCString(),
    });
    if (request.method === 'HEAD') {
        fs.close(handle, () => {});
        response.end();
        return;
    }
    if (info.size <= READ_AT_ONCE) {
        sendSmall(response, handle, info.size);
    } else {
        pipeline(fs.createReadStream(name, { fd: handle }), response, () => {});
    }
}

function sendSmall(response, handle, size) {
    fs.read(handle, Buffer.allocUnsafe(size), 0, size, 0, (error, got, data) => {
        fs.close(handle, () => {});
        if (error || got < size) {
            response.destroy();
        } else {
            response.end(data);
        }
    });
}

function serveFile(request, response, name) {
    fs.open(name, 'r', (missing, handle) => {
        if (missing) {
            refuse(response, 404);
            return;
        }
        fs.fstat(handle, (error, info) => {
            if (!error && info.isFile()) {
                sendFile(request, response, name, handle, info);
                return;
            }
            fs.close(handle, () => {});
            if (!error && info.isDirectory() && path.basename(name) !== 'index.html') {
                serveFile(request, response, path.join(name, 'index.html'));
            } else {
                refuse(response, 404);
            }
        });
    });
}

function answer(request, response) {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
        refuse(response, 405);
        return;
    }
    const route = ROUTES[request.url];
    if (route) {
        route(request, response);
        return;
    }
    const name = locate(request.url);
    if (name) {
        serveFile(request, response, name);
    } else {
        refuse(response, 400);
    }
}

function listen(server, port) {
    server.keepAliveTimeout = 65000;
    server.listen({ host: '127.0.0.1', port, backlog: 4096 });
}

function serve() {
    listen(http.createServer(answer), settings.port);
    if (settings.h2c_port) {
        listen(http2.createServer(answer), settings.h2c_port);
    }
    if (settings.tls_port) {
        const keys = { cert: fs.readFileSync(settings.cert), key: fs.readFileSync(settings.key) };
        listen(http2.createSecureServer({ ...keys, allowHTTP1: true, minVersion: 'TLSv1.2' }, answer), settings.tls_port);
    }
}

if (settings.workers > 1 && cluster.isPrimary) {
    for (let i = 0; i < settings.workers; i++) {
        cluster.fork();
    }
} else {
    serve();
}
