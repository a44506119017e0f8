/* SPDX-License-Identifier: Apache-2.0 */
/* What web services are asked for, as one writes it with Duda. */
#include <duda.h>

static int greet(struct duda_ctx *d)
{
    int e = duda_content_type(d, "text/plain");
    return e ? e : duda_puts(d, CONTEST_HELLO);
}

struct message {
    mk_str message;
};

static const struct duda_schema_field members[] = {DUDA_STRING(struct message, message)};
static const struct duda_schema shape = DUDA_SCHEMA(struct message, members);

static int json(struct duda_ctx *d)
{
    const struct message m = {MK_STR("Hello, World!")};
    return duda_send_json_struct(d, &shape, &m);
}

static int plaintext(struct duda_ctx *d)
{
    int e = duda_content_type(d, "text/plain");
    return e ? e : duda_puts(d, "Hello, World!");
}

DUDA_SERVICE(contest, DUDA_GET(CONTEST_DYNAMIC, greet, "Greets."), DUDA_GET("/json", json, "An object."),
             DUDA_GET("/plaintext", plaintext, "A text."));
