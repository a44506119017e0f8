/* SPDX-License-Identifier: Apache-2.0 */
/* Shows the response head of this page. Scripts cannot see the head of their own page, so this requests it again. */
'use strict';

const element = (name, text) => {
    const e = document.createElement('span');
    e.className = name;
    e.textContent = text;
    return e;
};

const properName = (name) => name.replace(/(^|-)[a-z]/g, (c) => c.toUpperCase()).replace(/^Etag$/, 'ETag');

async function showAnswer() {
    const response = await fetch(location.href, {method: 'HEAD', cache: 'no-store'});
    const head = document.getElementById('head');
    head.append(element('good', `${response.status} ${response.statusText}`));
    for (const [name, value] of response.headers)
        head.append('\n', element('key', `${properName(name)}:`), ` ${value}`);

    const [page] = performance.getEntriesByType('navigation');
    if (page && page.responseStart > page.requestStart) {
        const ms = (page.responseStart - page.requestStart).toFixed(1);
        document.getElementById('timing').textContent = `first byte ${ms} ms after the request, over ${page.nextHopProtocol}`;
    }
    document.getElementById('answer').hidden = false;
}

if (location.protocol.startsWith('http'))
    showAnswer().catch(() => {});
