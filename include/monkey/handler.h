/* SPDX-License-Identifier: Apache-2.0 */
/* Request handlers, the targets of routes in [ROUTES], and the verdicts of hooks and handlers. */
#ifndef MONKEY_HANDLER_H
#define MONKEY_HANDLER_H

#include <monkey/request.h>
#include <monkey/response.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mk_conf_ctx;

/** The decision of a hook or a handler. 0 is not a verdict: `return 0;` is a bug, and the client gets 500. */
enum mk_verdict {
    MK_NEXT = 1,  /**< not handled: continue with the next hook or route */
    MK_DONE,      /**< the response is complete, or has a source that will complete it */
    MK_WAIT,      /**< call again after mk_request_resume(), or when request input arrives */
    MK_ERROR,     /**< send the status that was set (500 if none), with its error page */
    MK_REWRITTEN, /**< after mk_request_rewrite(): start over with the first hook */
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
    const char *name;   /**< the name in [ROUTES] */
    const char *syntax; /**< syntax of its arguments in [ROUTES], for messages: "STATUS URL"; NULL: none */
    /**
     * The methods that the handler supports, as MK_METHOD_BITs; MK_METHOD_GET implies HEAD. The server
     * answers OPTIONS, and rejects other methods with 405 and Allow. 0: handle() decides.
     */
    unsigned methods;
    /** Handles a request in the event loop of a worker; must not block. `data` is the data of the route. */
    enum mk_verdict (*handle)(struct mk_request *request, struct mk_response *response, void *data);
    /**
     * Parses the arguments after the name in [ROUTES] (see monkey/config.h), once per route, and sets *data
     * for handle(). Returns false if they are invalid: either bind() has reported the error, or the server
     * reports that `syntax` was expected. NULL: no arguments are allowed.
     */
    bool (*bind)(const struct mk_conf_ctx *ctx, mk_str words, void **data);
    /**
     * Returns the maximum body size in bytes that handle() accepts for this request, in place of
     * `MaxBodySize`, for handlers whose limit depends on the path. Called once before handle() if the request
     * has a body. A longer body is answered with 413, and mk_request_read() fails with -EMSGSIZE.
     * MK_BODY_MAX_DEFAULT: `MaxBodySize` applies. MK_BODY_MAX_PASS: handle() returns MK_NEXT without reading
     * the body. NULL: `MaxBodySize` applies to every request.
     */
    uint64_t (*body_max)(struct mk_request *request, void *data);
    /** For `monkey explain`, which does not call handle() of plugins: uses mk_request_explain() to describe
     * how the request would be answered. Returns false if handle() would return MK_NEXT. May be NULL. */
    bool (*explain)(struct mk_request *request, void *data);
    /** MK_HANDLER_... bits, which the server uses to warn about probable mistakes in routes. */
    unsigned traits;
    /** what raises the result of body_max(), for the log: "UploadMax in [DIRLISTING]"; NULL: nothing */
    const char *body_max_setting;
    uint64_t reserved[3]; /**< must be zero */
};

/** The handler serves content below the DocumentRoot, such as files or scripts. */
#define MK_HANDLER_FILES 1u
/** The handler forwards requests to another program, which usually serves more than one path. */
#define MK_HANDLER_FORWARDS 2u

/** Special results of mk_handler.body_max; other values are a number of bytes, and UINT64_MAX means no
 * limit. */
#define MK_BODY_MAX_DEFAULT (MK_API_CAST(uint64_t, 0))
#define MK_BODY_MAX_PASS    (UINT64_MAX - 1)

#ifdef __cplusplus
}
#endif

#endif
