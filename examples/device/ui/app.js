const $ = id => document.getElementById(id);
const show = error => { $("error").textContent = error ? error.message : ""; };

async function call(method, path, body, headers = {}) {
    const response = await fetch(path, {method, body, headers});
    if (!response.ok) {
        const problem = await response.json(); // problem details (RFC 9457)
        throw new Error(problem.detail || problem.title);
    }
    return response.status === 204 ? null : response.json();
}

const onSubmit = (id, fn) => $(id).addEventListener("submit", event => {
    event.preventDefault();
    fn(event.target.elements).then(() => show(), show);
});

function append(id, text) {
    $(id).append(text + "\n");
    $(id).scrollTop = $(id).scrollHeight;
}

function openConsole() {
    const socket = new WebSocket(location.origin.replace("http", "ws") + "/api/console");
    socket.onmessage = event => append("replies", event.data);
    socket.onclose = () => append("replies", "-- disconnected");
    onSubmit("console", async fields => socket.send(fields.command.value));
}

async function start() {
    const settings = await call("GET", "/api/settings");
    for (const [name, value] of Object.entries(settings))
        $("settings").elements[name].value = value;
    document.querySelector("main").hidden = false;
    $("login").hidden = true;
    new EventSource("/api/log").onmessage = event => append("log", event.data);
    openConsole();
}

onSubmit("login", async fields => {
    await call("POST", "/api/login", null, {Authorization: `Bearer ${fields.token.value}`});
    await start();
});

onSubmit("settings", fields => call("PUT", "/api/settings",
    JSON.stringify({name: fields.name.value, interval: Number(fields.interval.value)}), {"Content-Type": "application/json"}));

onSubmit("firmware", async fields => {
    const bar = document.querySelector("progress");
    const timer = setInterval(async () => {
        const {received, total} = await call("GET", "/api/firmware");
        bar.value = total > 0 ? received / total : 0;
    }, 500);
    try {
        await call("PUT", "/api/firmware", fields.image.files[0]);
        bar.value = 1;
    } finally {
        clearInterval(timer);
    }
});

start().catch(() => {}); // shows the login form if there is no cookie yet
