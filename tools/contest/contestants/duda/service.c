/* SPDX-License-Identifier: Apache-2.0 */
/* Typical web service responses, written with Duda. */
#include <duda.h>

static int send_greeting(struct duda_ctx *d)
{
    int e = duda_content_type(d, MK_STR("text/plain"));
    return e ? e : duda_puts(d, CONTEST_HELLO);
}

struct message {
    mk_str message;
};

static const struct duda_schema_field members[] = {DUDA_STRING(struct message, message)};
static const struct duda_schema message_schema = DUDA_SCHEMA(struct message, members);

static int send_json(struct duda_ctx *d)
{
    const struct message m = {MK_STR("Hello, World!")};
    return duda_send_json_struct(d, &message_schema, &m);
}

static int send_plaintext(struct duda_ctx *d)
{
    int e = duda_content_type(d, MK_STR("text/plain"));
    return e ? e : duda_puts(d, "Hello, World!");
}

DUDA_SERVICE(contest, DUDA_GET(CONTEST_DYNAMIC, send_greeting, "Greets."),
             DUDA_GET("/json", send_json, "An object."), DUDA_GET("/plaintext", send_plaintext, "A text."));
