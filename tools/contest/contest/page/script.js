// SPDX-License-Identifier: Apache-2.0
// The page works without this script. It sorts tables, stores the color theme, and highlights the current section.
(() => {
    const number = cell => cell.dataset.value === "" ? NaN : parseFloat(cell.dataset.value);
    const sort = (table, column, header) => {
        const down = header.getAttribute("aria-sort") === "ascending";
        table.querySelectorAll("thead th").forEach(th => th.removeAttribute("aria-sort"));
        header.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = table.tBodies[0];
        const order = (a, b) => {
            if (column === 0) return a.cells[0].textContent.localeCompare(b.cells[0].textContent) * (down ? -1 : 1);
            const x = number(a.cells[column]), y = number(b.cells[column]);
            return isNaN(x) || isNaN(y) ? isNaN(x) - isNaN(y) : (x - y) * (down ? -1 : 1);  // unknown values stay last
        };
        [...body.rows].sort(order).forEach(row => body.append(row));
    };
    for (const table of document.querySelectorAll("table.sortable"))
        table.querySelectorAll("thead th").forEach((header, column) => {
            const button = document.createElement("button");
            button.append(...header.childNodes);
            header.append(button);
            button.addEventListener("click", () => sort(table, column, header));
        });

    const store = { get: () => { try { return localStorage.getItem("theme"); } catch { return null; } },
                    set: value => { try { localStorage.setItem("theme", value); } catch { /* no storage for local files */ } } };
    const chosen = document.getElementById(`theme-${store.get()}`);
    if (chosen) chosen.checked = true;
    document.querySelectorAll(".theme input").forEach(input => input.addEventListener("change", () => store.set(input.value)));

    // Opens the target of a link.
    const unfold = () => document.getElementById(location.hash.slice(1))?.querySelectorAll(":scope > details")
        .forEach(details => { details.open = true; });
    addEventListener("hashchange", unfold);
    unfold();

    if (!("IntersectionObserver" in window)) return;
    const links = new Map([...document.querySelectorAll("nav a")].map(a => [a.hash.slice(1), a]));
    const watch = new IntersectionObserver(entries => entries.forEach(entry => {
        links.get(entry.target.id).classList.toggle("here", entry.isIntersecting);
    }), { rootMargin: "-20% 0px -70% 0px" });
    links.forEach((_, id) => watch.observe(document.getElementById(id)));
})();
