/* SPDX-License-Identifier: Apache-2.0 */
/* A page with a message of the day from Redis: one command per request. */
#define DUDA_USE "duda-redis"
#include <duda.h>
#include <duda/redis.h>

static int show(struct duda_ctx *d)
{
    struct duda_redis_reply reply;
    int e = duda_redis(d, duda_redis_find(d, NULL), &reply, MK_STR("GET"), MK_STR("message"));
    if (e)
        return e;
    mk_str text = reply.type == DUDA_REDIS_TEXT ? reply.text : MK_STR("There is no message today.");
    e = duda_html(d, MK_STR("<!DOCTYPE html><p>"));
    e = e ? e : duda_write(d, duda_html_escape(d, text));
    return e ? e : duda_puts(d, "</p>\n");
}

struct message {
    mk_str text;
};

static const struct duda_schema_field members[] = {
    DUDA_STRING(struct message, text, .min_length = 1, .max_length = 200)};
static const struct duda_schema schema = DUDA_SCHEMA(struct message, members);

static int change(struct duda_ctx *d)
{
    struct message message = {MK_STR("")};
    struct duda_redis_reply reply;
    int e = duda_bind_json(d, &schema, &message, NULL);
    e = e ? e
          : duda_redis(d, duda_redis_find(d, NULL), &reply, MK_STR("SET"), MK_STR("message"), message.text);
    return e ? e : 204;
}

DUDA_SERVICE(motd, DUDA_GET("/page", show, "The page."),
             DUDA_PUT("/page", change, "Another message.", .request_body = &schema, .responses = "204"));
