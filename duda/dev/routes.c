/* SPDX-License-Identifier: Apache-2.0 */
#include "routes.h"

#include "openapi.h"
#include "order.h"

#include <monkey/text.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 8 * 1024 * 1024 };

/* ---- A list ---- */

struct columns {
    int method, path, name;
};

static int wider(int width, const char *text)
{
    int len = (int)strnlen(text, 60);
    return len > width ? len : width;
}

static void measure(const struct dev_route *r, void *ctx)
{
    struct columns *c = ctx;
    c->method = wider(c->method, r->line->method);
    c->path = wider(c->path, r->pattern);
    c->name = wider(c->name, r->line->name);
}

static void print(const struct dev_route *r, void *ctx)
{
    const struct columns *c = ctx;
    const char *slash = strrchr(r->line->file, '/');
    printf("%-*s  %-*s  %-*s  %s:%d%s%s%s%s\n", c->method, r->line->method, c->path, r->pattern, c->name,
           r->line->name, slash ? slash + 1 : r->line->file, r->line->line, *r->host ? "  " : "", r->host,
           r->line->doc ? "  " : "", r->line->doc ? r->line->doc : "");
}

static int run_routes(int argc, char **argv)
{
    struct dev_order order = {
        .usage = "usage: monkey routes SOURCE.c\n",
        .help = "Lists the routes of a service: methods, path, handler, place in the source, "
                "what it does.\n\n  -h, --help  this text\n",
        .words_min = 1,
        .words_max = 1};
    struct dev_description d;
    struct columns columns = {0};
    int code;
    if (!dev_order_read(&order, argc, argv, &code))
        return code;
    if (!dev_describe(&d, "routes", order.words[0]))
        return DEV_FAILED;
    dev_describe_each(&d, measure, &columns);
    dev_describe_each(&d, print, &columns);
    dev_describe_end(&d);
    return fflush(stdout) == 0 ? DEV_FINE : DEV_FAILED;
}

const struct mk_verb dev_verb_routes = {
    .name = "routes",
    .args = "SOURCE.c",
    .help = "List the routes of a service.",
    .run = run_routes,
};

/* ---- A page ---- */

static const char head[] =
    "<!DOCTYPE html>\n<html lang=en><meta charset=utf-8>"
    "<meta name=viewport content=\"width=device-width,initial-scale=1\">\n<style>\n"
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;"
    "padding:0 1rem}\nform{border:1px solid #8886;border-radius:6px;padding:.5rem 1rem;margin:1rem 0}\n"
    "h2{font:600 1rem ui-monospace,monospace;margin:.25rem 0}label{display:block}\n"
    "input,textarea{font:14px ui-monospace,monospace;margin:.25rem 0 "
    ".5rem;width:100%;box-sizing:border-box}\n"
    "pre{font:14px/1.45 ui-monospace,monospace;overflow-x:auto;white-space:pre-wrap}pre:empty{display:none}\n"
    "</style>\n";

/* A form for each operation: what the page knows is the OpenAPI text above it. */
static const char script[] =
    "<script>\nconst api = JSON.parse(document.getElementById('api').textContent);\n"
    "const base = new URLSearchParams(location.search).get('base') || location.origin;\n"
    "function add(to, name, text, more) {\n  const e = Object.assign(document.createElement(name), more);\n"
    "  if (text) e.textContent = text;\n  to.append(e);\n  return e;\n}\n"
    "function show(method, path, op) {\n  const form = add(document.querySelector('main'), 'form');\n"
    "  add(form, 'h2', method.toUpperCase() + ' ' + path);\n  add(form, 'p', op.summary);\n  const fields = "
    "{};\n"
    "  for (const p of op.parameters || []) fields[p.name] = add(add(form, 'label', p.name), 'input', '', "
    "{required: true});\n"
    "  const query = add(add(form, 'label', 'query'), 'input', '', {placeholder: 'name=value&...'});\n"
    "  const type = op.requestBody && add(add(form, 'label', 'type'), 'input', '', {value: "
    "'application/json'});\n"
    "  const content = op.requestBody && add(add(form, 'label', 'content'), 'textarea', '', {rows: 4});\n"
    "  add(form, 'button', 'Try it');\n  const result = add(form, 'pre');\n"
    "  form.onsubmit = async event => {\n    event.preventDefault();\n"
    "    const target = path.replace(/{([^}]+)}/g, (_, n) => "
    "fields[n].value.split('/').map(encodeURIComponent).join('/'));\n"
    "    try {\n      const how = {method: method.toUpperCase()};\n"
    "      if (content) Object.assign(how, {body: content.value, headers: {'Content-Type': type.value}});\n"
    "      const r = await fetch(base + target + (query.value ? '?' + query.value : ''), how);\n"
    "      result.textContent = r.status + ' ' + r.statusText + '\\n' +\n"
    "        [...r.headers].map(h => h.join(': ')).join('\\n') + '\\n\\n' + await r.text();\n"
    "    } catch (e) {\n      result.textContent = String(e);\n    }\n  };\n}\n"
    "for (const [path, ops] of Object.entries(api.paths))\n"
    "  for (const [method, op] of Object.entries(ops)) show(method, path, op);\n</script>\n</html>\n";

/* JSON within HTML: no text in it may end the element. */
static void add_json(struct mk_buf *out, mk_str json)
{
    for (size_t i = 0; i < json.len; i++)
        if (json.p[i] == '<')
            mk_buf_add(out, MK_STR("\\u003c"));
        else
            mk_buf_add_char(out, json.p[i]);
}

static void write_page(const struct dev_description *d, mk_str json, struct mk_buf *out)
{
    mk_buf_add(out, mk_str_from_c(head));
    mk_buf_add(out, MK_STR("<title>"));
    mk_html_escape(out, mk_str_from_c(d->service->name));
    mk_buf_add(out, MK_STR("</title>\n<h1>"));
    mk_html_escape(out, mk_str_from_c(d->service->name));
    mk_buf_add(out, MK_STR("</h1>\n<main></main>\n<script type=application/json id=api>"));
    add_json(out, json);
    mk_buf_add(out, MK_STR("</script>\n"));
    mk_buf_add(out, mk_str_from_c(script));
}

static int put(const char *path, const struct mk_buf *text)
{
    FILE *f = text->failed ? NULL : path ? fopen(path, "we") : stdout;
    if (!f)
        return dev_order_complain(DEV_FAILED, "doc", path, "it cannot be written");
    bool ok = fwrite(text->p, 1, text->len, f) == text->len;
    ok = (path ? fclose(f) : fflush(f)) == 0 && ok;
    return ok ? DEV_FINE : dev_order_complain(DEV_FAILED, "doc", path, "it cannot be written");
}

static int run_doc(int argc, char **argv)
{
    const char *output = NULL;
    bool is_json = false;
    const struct dev_option options[] = {{'o', "output", &output, NULL}, {'j', "json", NULL, &is_json}};
    struct dev_order order = {.usage = "usage: monkey doc [-j] [-o FILE] SOURCE.c\n",
                              .help = "Writes a page about the routes of a service, on which they can be "
                                      "tried. `monkey run` shows it at "
                                      "" DEV_DOC_PATH ".\n\n"
                                      "  -j, --json         OpenAPI 3.1 in place of the page\n"
                                      "  -o, --output FILE  where to; standard output if it is not said\n"
                                      "  -h, --help         this text\n",
                              .options = options,
                              .n_options = MK_LEN(options),
                              .words_min = 1,
                              .words_max = 1};
    struct mk_buf json = mk_buf_growing(TEXT_MAX), page = mk_buf_growing(2 * TEXT_MAX);
    struct dev_description d;
    int code;
    if (!dev_order_read(&order, argc, argv, &code))
        return code;
    if (!dev_describe(&d, "doc", order.words[0]))
        return DEV_FAILED;
    dev_openapi_write(&d, &json);
    write_page(&d, mk_buf_str(&json), &page);
    code = put(output, is_json ? &json : &page);
    mk_buf_free(&json);
    mk_buf_free(&page);
    dev_describe_end(&d);
    return code;
}

const struct mk_verb dev_verb_doc = {
    .name = "doc",
    .args = "SOURCE.c",
    .help = "Write a page about a service's routes, or OpenAPI.",
    .run = run_doc,
};
