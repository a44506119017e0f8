/* SPDX-License-Identifier: Apache-2.0 */
#include "request_messages.h"

enum { TEXT_MAX = 64 * 1024 };

static const char key; /* key of the log messages attached to a request */

static void free_text(void *text)
{
    mk_buf_free(text);
}

static struct mk_buf *get_text(struct mk_request *request)
{
    struct mk_buf *text = mk_request_attached(request, &key);
    if (text)
        return text;
    text = mk_request_alloc(request, sizeof *text);
    if (!text)
        return NULL;
    *text = mk_buf_growing(TEXT_MAX);
    return mk_request_attach(request, &key, text, free_text) ? NULL : text;
}

bool dev_request_messages_add(struct mk_request *request, enum mk_log_level level, mk_str message)
{
    struct mk_buf *text = get_text(request);
    /* Keeps a debug message only if there is no other message. */
    bool is_relevant = text && (level < MK_LOG_DEBUG || text->len == 0);
    if (is_relevant && text->len + message.len < TEXT_MAX)
        mk_buf_addf(text, "%.*s\n", MK_STR_ARG(message));
    return level >= MK_LOG_DEBUG;
}

mk_str dev_request_messages_get(struct mk_request *request)
{
    const struct mk_buf *text = mk_request_attached(request, &key);
    return text ? mk_buf_str(text) : MK_STR_NULL;
}
