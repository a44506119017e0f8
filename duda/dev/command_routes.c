/* SPDX-License-Identifier: Apache-2.0 */
#include "command_routes.h"

#include "doc/doc.h"
#include "doc/openapi.h"
#include "ipc_protocol.h"
#include "options.h"

#include <monkey/text.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 8 * 1024 * 1024, SOURCES_MAX = 100 };

/* ---- List ---- */

struct columns {
    int method, path, name;
};

static int max_column_width(int width, const char *text)
{
    int len = (int)strnlen(text, 60);
    return len > width ? len : width;
}

static void measure_route_columns(const struct dev_route *r, void *ctx)
{
    struct columns *c = ctx;
    c->method = max_column_width(c->method, r->line->method);
    c->path = max_column_width(c->path, r->pattern);
    c->name = max_column_width(c->name, r->line->name);
}

static void print_route(const struct dev_route *r, void *ctx)
{
    const struct columns *c = ctx;
    const char *slash = strrchr(r->line->file, '/');
    printf("%-*s  %-*s  %-*s  %s:%d%s%s%s%s\n", c->method, r->line->method, c->path, r->pattern, c->name,
           r->line->name, slash ? slash + 1 : r->line->file, r->line->line, *r->host ? "  " : "", r->host,
           r->line->summary ? "  " : "", r->line->summary ? r->line->summary : "");
}

static int run_routes_command(int argc, char **argv)
{
    struct dev_options opts = {
        .usage = "usage: monkey routes SOURCE.c...|FOLDER\n",
        .help = "Lists the routes of a service: method, path, handler, source location and "
                "summary.\n\n  -h, --help  print this help and exit\n",
        .args_min = 1,
        .args_max = SOURCES_MAX};
    struct dev_introspection d;
    struct columns columns = {0};
    int code;
    if (!dev_options_parse(&opts, argc, argv, &code))
        return code;
    if (!dev_introspect_load(
            &d, "routes", &(struct dev_service_words){(const char *const *)opts.args, (size_t)opts.n_args}))
        return DEV_EXIT_FAILED;
    dev_introspect_each_route(&d, measure_route_columns, &columns);
    dev_introspect_each_route(&d, print_route, &columns);
    dev_introspect_free(&d);
    return fflush(stdout) == 0 ? DEV_EXIT_OK : DEV_EXIT_FAILED;
}

const struct mk_command dev_command_routes = {
    .name = "routes",
    .args = "SOURCE.c...|FOLDER",
    .help = "List the routes of a service.",
    .run = run_routes_command,
};

/* ---- HTML page and OpenAPI document ---- */

/* Escapes JSON for a script element, so that no string can end the element. */
static void append_script_json(struct mk_buf *out, mk_str json)
{
    for (size_t i = 0; i < json.len; i++)
        if (json.p[i] == '<')
            mk_buf_add(out, MK_STR("\\u003c"));
        else
            mk_buf_add_char(out, json.p[i]);
}

/* Returns the text for a placeholder of the page, such as @TITLE@. */
static const char *doc_text(const struct duda_service *service, mk_str name)
{
    const char *text = mk_str_eq(name, MK_STR("TITLE"))     ? service->title ? service->title : service->name
                       : mk_str_eq(name, MK_STR("VERSION")) ? service->version
                                                            : service->description;
    return text ? text : "";
}

static void append_doc_body(const struct duda_service *service, struct mk_buf *out)
{
    mk_str rest = dev_doc_body;
    while (rest.p) {
        mk_buf_add(out, mk_str_cut(&rest, '@'));
        if (rest.p)
            mk_html_escape(out, mk_str_from_c(doc_text(service, mk_str_cut(&rest, '@'))));
    }
}

/* The hashes allow only the style and the script of the page, so no other text can run as a script. */
static void append_doc_head(const struct duda_service *service, struct mk_buf *out)
{
    mk_buf_addf(out,
                "<!DOCTYPE html>\n<html lang=en><meta charset=utf-8>"
                "<meta name=viewport content=\"width=device-width,initial-scale=1\">\n"
                "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; script-src '%.*s'; "
                "style-src '%.*s'; connect-src http: https:; img-src blob:; base-uri 'none'; "
                "form-action 'none'\">\n<title>",
                MK_STR_ARG(dev_doc_script_hash), MK_STR_ARG(dev_doc_style_hash));
    mk_html_escape(out, mk_str_from_c(doc_text(service, MK_STR("TITLE"))));
    mk_buf_add(out, MK_STR("</title>\n<style>"));
    mk_buf_add(out, dev_doc_style);
    mk_buf_add(out, MK_STR("</style>\n"));
}

static void write_doc_page(const struct dev_introspection *d, mk_str json, struct mk_buf *out)
{
    append_doc_head(d->service, out);
    append_doc_body(d->service, out);
    mk_buf_add(out, MK_STR("<script type=application/json id=api>"));
    append_script_json(out, json);
    mk_buf_add(out, MK_STR("</script>\n<script>"));
    mk_buf_add(out, dev_doc_script);
    mk_buf_add(out, MK_STR("</script>\n</html>\n"));
}

static int write_output_file(const char *command, const char *path, const struct mk_buf *text)
{
    FILE *f = text->failed ? NULL : path ? fopen(path, "we") : stdout;
    if (!f)
        return dev_print_error(DEV_EXIT_FAILED, command, path, "cannot write the file");
    bool ok = fwrite(text->p, 1, text->len, f) == text->len;
    ok = (path ? fclose(f) : fflush(f)) == 0 && ok;
    return ok ? DEV_EXIT_OK : dev_print_error(DEV_EXIT_FAILED, command, path, "cannot write the file");
}

/* Implements `doc` and `openapi`; the page of `doc` contains the OpenAPI document. */
static int write_api_document(struct dev_options *o, const char *command, bool is_page, int argc, char **argv)
{
    const char *output = NULL;
    const struct dev_option options[] = {{'o', "output", &output, NULL}};
    struct mk_buf json = mk_buf_growing(TEXT_MAX), page = mk_buf_growing(2 * TEXT_MAX);
    struct dev_introspection d;
    int code;
    o->options = options;
    o->n_options = MK_LEN(options);
    o->args_min = 1;
    o->args_max = SOURCES_MAX;
    if (!dev_options_parse(o, argc, argv, &code))
        return code;
    if (!dev_introspect_load(&d, command,
                             &(struct dev_service_words){(const char *const *)o->args, (size_t)o->n_args}))
        return DEV_EXIT_FAILED;
    dev_openapi_write(&d, &json);
    if (is_page)
        write_doc_page(&d, mk_buf_str(&json), &page);
    code = write_output_file(command, output, is_page ? &page : &json);
    mk_buf_free(&json);
    mk_buf_free(&page);
    dev_introspect_free(&d);
    return code;
}

static int run_doc_command(int argc, char **argv)
{
    struct dev_options o = {
        .usage = "usage: monkey doc [-o FILE] SOURCE.c...|FOLDER\n",
        .help = "Writes an HTML page that documents the routes of a service, with forms to try them. "
                "`monkey run`\nserves it at " DEV_DOC_PATH ".\n\n"
                "  -o, --output FILE  write to FILE instead of standard output\n"
                "  -h, --help         print this help and exit\n"};
    return write_api_document(&o, "doc", true, argc, argv);
}

const struct mk_command dev_command_doc = {
    .name = "doc",
    .args = "SOURCE.c...|FOLDER",
    .help = "Write an HTML page that documents the routes of a service.",
    .run = run_doc_command,
};

static int run_openapi_command(int argc, char **argv)
{
    struct dev_options o = {.usage = "usage: monkey openapi [-o FILE] SOURCE.c...|FOLDER\n",
                            .help = "Writes the OpenAPI 3.1 document of a service, as JSON.\n\n"
                                    "  -o, --output FILE  write to FILE instead of standard output\n"
                                    "  -h, --help         print this help and exit\n"};
    return write_api_document(&o, "openapi", false, argc, argv);
}

const struct mk_command dev_command_openapi = {
    .name = "openapi",
    .args = "SOURCE.c...|FOLDER",
    .help = "Write the OpenAPI document of a service.",
    .run = run_openapi_command,
};
