/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatches a request head through the complete request flow, over a folder with files, links and hidden
 * files. The first byte selects the host, and the body follows the head. Any input gives one valid response,
 * one log record, and nothing from outside the folder. */
#include "unit/handlers.h"
#include "unit/site.h"
#include "web/request_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FIELDS_MAX = 32, PULLED_MAX = 1 << 16, RUNS_MAX = 4 };

static struct site site;
static struct handlers handlers;
static struct handlers_routes routes;
static struct mk_plugin plugin;
static struct mk_hook hook;
static unsigned n_responses, n_records;

static void on_response(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)request;
    (void)data;
    MK_ASSERT(!response->sealed);
    n_responses++;
}

static void on_done(const struct mk_access_record *record, void *data)
{
    (void)data;
    MK_ASSERT(record->status >= 200 && record->status <= 599);
    n_records++;
}

static void end(void)
{
    site_fini(&site);
}

static void begin(void)
{
    static const struct mk_error_page page = {.status = 404, .path = MK_STR_INIT("404.html")};
    site_init(&site);
    folder_add_folder(&site.folder, "root");
    folder_add_folder(&site.folder, "root/dir");
    folder_add_folder(&site.folder, "root/.git");
    folder_add(&site.folder, "outside", MK_STR("OUTSIDE"));
    folder_add(&site.folder, "root/.git/x", MK_STR("HIDDEN"));
    folder_add(&site.folder, "root/.hidden", MK_STR("HIDDEN"));
    folder_add(&site.folder, "root/404.html", MK_STR("not found"));
    folder_add(&site.folder, "root/index.html", MK_STR("front page"));
    folder_add(&site.folder, "root/index.html.gz", MK_STR("gzip"));
    folder_add(&site.folder, "root/dir/index.htm", MK_STR("index of dir"));
    folder_add(&site.folder, "root/dir/file", MK_STR("0123456789"));
    folder_add_link(&site.folder, "root/link", "../outside");
    folder_add_link(&site.folder, "root/up", "..");
    char path[PATH_MAX];
    MK_ASSERT(mk_file_open_root(folder_path(&site.folder, "root", path), &site.host.root.fd) == 0);
    site.host.root.path = "root";
    site.host.error_pages = &page;
    site.host.n_error_pages = 1;
    site.host.n_routes = handlers_route(&routes, &handlers, &mk_static);
    site.host.routes = routes.at;
    plugin = (struct mk_plugin){.name = "count", .on_response = on_response, .on_done = on_done};
    hook = (struct mk_hook){.plugin = &plugin};
    site.host.hooks.response = site.host.hooks.done = (struct mk_hook_list){.at = &hook, .n = 1};
    atexit(end);
}

static void set_host(uint8_t how)
{
    site.host.ranges = how & 1;
    site.host.precompressed = how & 2;
    site.host.dot_files = how & 4;
    site.host.root.how.no_openat2 = how & 8;
    site.host.fallback = how & 16 ? MK_STR("index.html") : MK_STR_NULL;
}

/* ---- Request body ---- */

static mk_str content;

static ssize_t on_read(void *ctx, char *buffer, size_t cap)
{
    (void)ctx;
    if (content.len == 0)
        return -ECONNRESET;
    size_t n = mk_min(cap, content.len);
    memcpy(buffer, content.p, n);
    content = mk_str_skip(content, n);
    return (ssize_t)n;
}

static void on_resume(void *ctx)
{
    (void)ctx;
}

static const struct mk_request_ops ops = {.read = on_read, .resume = on_resume};

/* ---- Checks of a response ---- */

static void check_field(mk_str name, mk_str value)
{
    MK_ASSERT(mk_is_token(name) && mk_is_header_value(value));
}

static void check_fields(const struct mk_response *r)
{
    for (unsigned i = 0; i < r->n_fields; i++)
        check_field(r->fields[i].name, r->fields[i].value);
    for (unsigned i = 0; i < r->n_blocks; i++)
        for (unsigned j = 0; j < r->blocks[i]->n; j++)
            check_field(r->blocks[i]->fields[j].name, r->blocks[i]->fields[j].value);
    for (unsigned i = 0; i < r->n_blocks; i++)
        MK_ASSERT(mk_str_ends(r->blocks[i]->text, MK_STR("\r\n")));
}

static bool holds(mk_str text, const char *part)
{
    return memmem(text.p, text.len, part, strlen(part)) != NULL;
}

static void check_content(struct mk_exchange *x)
{
    static char pulled[PULLED_MAX + 1];
    struct mk_response_body *c = &x->response.content;
    uint64_t length = c->length;
    bool by_source = c->source;
    size_t n = 0;
    ssize_t got = 1;
    while (got > 0 && n < PULLED_MAX) {
        got = mk_response_body_read(c, pulled + n, PULLED_MAX - n);
        n += got > 0 ? (size_t)got : 0;
    }
    MK_ASSERT(by_source || n == length || n == PULLED_MAX);
    if (by_source)
        return; /* the response echoes the client's input */
    mk_str text = mk_str_of(pulled, n);
    MK_ASSERT(!holds(text, "OUTSIDE"));
    MK_ASSERT(site.host.dot_files || !holds(text, "HIDDEN"));
}

static void check_answer(struct mk_exchange *x)
{
    MK_ASSERT(x->step == MK_DISPATCH_READY && n_responses == (x->request.target->path.p != NULL) &&
              n_records == 0);
    MK_ASSERT(x->response.status >= 200 && x->response.status <= 599);
    check_fields(&x->response);
    check_content(x);
    x->response.sealed = true;
    mk_dispatch_end(x, MK_OUTCOME_OK, 0, 0, site.now_ms);
    MK_ASSERT(n_records == 1);
}

/* ---- Request flow ---- */

/* Returns 0, or the status with which a connection would reject the head. */
static unsigned parse_head(struct mk_exchange *x, struct mk_request_head *head)
{
    struct mk_request *r = &x->request;
    struct mk_framing framing;
    r->version = head->minor ? 11 : 10;
    r->received.method = head->method;
    r->method_text = head->method_text;
    r->fields = head->fields;
    int status = mk_request_target_init(r, head->target, MK_STR_NULL);
    if (!status)
        status = mk_framing_parse(head, &(struct mk_authority_cache){0}, &framing);
    if (status)
        return (unsigned)status;
    if (!r->host.p)
        r->host = framing.host;
    r->length = framing.body == MK_BODY_CHUNKED ? MK_REQUEST_LENGTH_UNKNOWN : framing.length;
    r->ops = &ops;
    return r->length == MK_REQUEST_LENGTH_UNKNOWN || r->length <= INT64_MAX ? 0 : 413;
}

static void run(struct mk_exchange *x, mk_str in)
{
    static const struct mk_request_head_limits limits = {
        .head_max = 2048, .target_max = 1024, .fields_max = FIELDS_MAX};
    struct mk_header_field buffer[FIELDS_MAX];
    struct mk_request_head head = {.fields = {.at = buffer}};
    int n = mk_request_head_parse(&head, in, 0, &limits);
    unsigned status = n > 0 ? parse_head(x, &head) : n < 0 ? (unsigned)-n : 400;
    content = mk_str_skip(in, n > 0 ? head.len : in.len);
    bool ready = false;
    if (status)
        mk_dispatch_error(x, status);
    for (int i = 0; !ready && i < RUNS_MAX; i++)
        ready = mk_dispatch_run(x);
    if (!ready)
        mk_dispatch_error(x, 504);
    check_answer(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (site.now_ms == 0)
        begin();
    if (size == 0)
        return 0;
    set_host(data[0]);
    n_responses = n_records = 0;
    site.now_ms += 400; /* so that the cache rechecks files now and then */
    struct mk_exchange *x = mk_exchange_new(&site.web, &site.blocks, site.now_ms, site.now);
    MK_ASSERT(x != NULL);
    x->request.peer = &site.peer;
    run(x, mk_str_of((const char *)data + 1, size - 1));
    mk_exchange_free(x);
    return 0;
}
