/* SPDX-License-Identifier: Apache-2.0 */
/* Answering requests: what a route in [ROUTES] leads to, and the verdicts of hooks and handlers. */
#ifndef MONKEY_HANDLER_H
#define MONKEY_HANDLER_H

#include <monkey/request.h>
#include <monkey/response.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mk_conf_ctx;

/** What a hook or a handler decided. */
enum mk_verdict {
    MK_NEXT,      /**< not handled: continue with the next hook or route */
    MK_DONE,      /**< the response is complete, or has a source that will complete it */
    MK_WAIT,      /**< call me again after mk_request_resume(), or when input of the request arrives */
    MK_ERROR,     /**< answer with the status that I set (500 if none) and its error page */
    MK_REWRITTEN, /**< I called mk_request_rewrite(): begin again with the first hook */
};

/**
 * A handler answers requests.
 *
 *     static enum mk_verdict say_hello(struct mk_request *request, struct mk_response *response, void *data)
 *     {
 *         mk_response_add_header(response, MK_STR("Content-Type"), MK_STR("text/plain"));
 *         mk_response_set_body_nocopy(response, MK_STR("hello\n"));
 *         return MK_DONE;
 *     }
 *     const struct mk_handler hello = {
 *         .name = "hello", .methods = MK_METHOD_BIT(MK_METHOD_GET), .handle = say_hello};
 */
struct mk_handler {
    const char *name; /**< the word in [ROUTES] */
    const char *form; /**< what may follow it there, for messages: "STATUS URL"; NULL for nothing */
    /**
     * The methods it answers, as MK_METHOD_BITs; MK_METHOD_GET implies HEAD. The server answers OPTIONS, and
     * 405 with Allow for the others. 0: handle() decides.
     */
    unsigned methods;
    /** Called in the loop of a worker; must not block. `data` is what the route was made with. */
    enum mk_verdict (*handle)(struct mk_request *request, struct mk_response *response, void *data);
    /**
     * Parses the words after the name in [ROUTES] (see monkey/config.h), once per route: sets *data for
     * handle(). False if they are invalid: it has reported that, or the server reports that `form` was
     * expected. NULL: no words are allowed.
     */
    bool (*bind)(const struct mk_conf_ctx *spot, mk_str words, void **data);
    /**
     * The most bytes of content that handle() accepts for this request, in place of `MaxBodySize`, for
     * handlers whose paths differ in this. Called once before handle() if the request has content; longer
     * content is answered with 413, and mk_request_read() fails with -EMSGSIZE. MK_BODY_MAX_DEFAULT:
     * `MaxBodySize` holds. MK_BODY_MAX_PASS: handle() will return MK_NEXT and not read any. NULL:
     * `MaxBodySize` holds for every request.
     */
    uint64_t (*body_max)(struct mk_request *request, void *data);
    /** For `monkey explain`, which does not call handle() of plugins: says with mk_request_explain() how the
     * request would be answered. False: handle() would return MK_NEXT. May be NULL. */
    bool (*explain)(struct mk_request *request, void *data);
    /** MK_HANDLER_... bits, for warnings about routes that are probably mistakes. */
    unsigned traits;
};

/** It answers with, or for, what lies beneath the DocumentRoot: files, scripts. */
#define MK_HANDLER_FILES 1u
/** It hands requests on to another program, which has many paths. */
#define MK_HANDLER_FORWARDS 2u

/** Results of mk_handler.body_max beside a number of bytes; UINT64_MAX is no limit. */
#define MK_BODY_MAX_DEFAULT ((uint64_t)0)
#define MK_BODY_MAX_PASS    (UINT64_MAX - 1)

#ifdef __cplusplus
}
#endif

#endif
