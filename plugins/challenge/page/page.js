// SPDX-License-Identifier: Apache-2.0
// Solves the challenge in data-token: finds a number whose digits, appended to the token, give a SHA-256 hash that begins
// with enough zero bits. crypto.subtle is missing on pages without TLS, and slow for many short texts.
(function () {
    "use strict";
    const token = document.currentScript.dataset.token, bits = parseInt(token.slice(0, 2), 16);
    const bar = document.getElementById("challenge-progress"), status = document.getElementById("challenge-status");
    const page = location.pathname + location.search, path = "/.well-known/monkey-challenge";

    // The constants of SHA-256: fractional parts of the roots of the first primes.
    const H = new Int32Array(8), K = new Int32Array(64), w = new Int32Array(64);
    const fraction = x => (x - Math.floor(x)) * 4294967296 | 0;
    for (let n = 2, i = 0; i < 64; n++) {
        let d = 2;
        while (n % d) d++;
        if (d < n) continue;
        if (i < 8) H[i] = fraction(Math.sqrt(n));
        K[i++] = fraction(Math.cbrt(n));
    }

    // The first 32 bits of the hash of a text of at most 55 characters: one block.
    function hash(text) {
        const n = text.length;
        w.fill(0, 0, 15);
        for (let i = 0; i < n; i++) w[i >> 2] |= text.charCodeAt(i) << 24 - i % 4 * 8;
        w[n >> 2] |= 128 << 24 - n % 4 * 8;
        w[15] = n * 8;
        for (let i = 16; i < 64; i++) {
            const x = w[i - 15], y = w[i - 2];
            w[i] = w[i - 16] + w[i - 7] + ((x >>> 7 | x << 25) ^ (x >>> 18 | x << 14) ^ x >>> 3)
                + ((y >>> 17 | y << 15) ^ (y >>> 19 | y << 13) ^ y >>> 10);
        }
        let a = H[0], b = H[1], c = H[2], d = H[3], e = H[4], f = H[5], g = H[6], h = H[7];
        for (let i = 0; i < 64; i++) {
            const t = h + ((e >>> 6 | e << 26) ^ (e >>> 11 | e << 21) ^ (e >>> 25 | e << 7)) + (e & f ^ ~e & g) + K[i] + w[i] | 0;
            const u = ((a >>> 2 | a << 30) ^ (a >>> 13 | a << 19) ^ (a >>> 22 | a << 10)) + (a & b ^ a & c ^ b & c);
            h = g; g = f; f = e; e = d + t | 0; d = c; c = b; b = a; a = t + u | 0;
        }
        return a + H[0];
    }

    // A browser that does not send the cookie would get the same challenge again and again.
    let tries = 1;
    function mayTry() {
        try {
            const [time, n, last] = (sessionStorage.challenge || "0 0 ").split(" ");
            if (last === page && Date.now() - time < 30000) tries = +n + 1;
            return navigator.cookieEnabled && tries <= 3;
        } catch {
            return false;
        }
    }

    function answer(nonce) {
        sessionStorage.challenge = Date.now() + " " + tries + " " + page;
        location.replace(path + "?token=" + token + "&nonce=" + nonce + "&target="
            + page.replace(/^\/+/, "/").replace(/[%&+#]/g, encodeURIComponent) + location.hash);
    }

    // Computes for 50 ms at a time, so that the page stays responsive.
    let nonce = 0;
    function work() {
        const end = Date.now() + 50;
        do {
            if (Math.clz32(hash(token + nonce)) >= bits) return answer(nonce);
        } while (++nonce % 256 || Date.now() < end);
        if (bar) bar.value = 1 - Math.exp(-nonce / 2 ** bits);
        setTimeout(work);
    }

    // A redirect of an answer led here: another answer would get the same redirect.
    if (location.pathname.includes(path) || /[?&]token=\w{42}&nonce=/.test(page)) {
        if (status) status.textContent = "This site redirects " + path + ", so the check cannot end.";
    } else if (mayTry()) setTimeout(work);
    else if (status) status.textContent = status.dataset.cookies || "Allow cookies for this site, then reload this page in half a minute.";
})();
