/* SPDX-License-Identifier: Apache-2.0 */
/* Cross-origin resource sharing (CORS): which pages of other origins may call routes. */
#ifndef DUDA_CORS_H
#define DUDA_CORS_H

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A policy for DUDA_CORS(). It applies to all later entries of the table, and of the groups among them:
 *
 *     static const struct duda_cors app = {.origins = "https://app.example.org", .credentials = true};
 *
 *     DUDA_ROUTES(api,
 *         DUDA_CORS(&app),
 *         DUDA_GET("/orders", list_orders, "Lists the orders."),
 *         DUDA_POST("/orders", create_order, "Creates an order."));
 *
 * Duda answers preflight requests (OPTIONS with `Access-Control-Request-Method`) before any middleware runs,
 * because browsers send them without credentials. A route for OPTIONS replaces this response. All other
 * responses of the routes, including errors such as 405, get the headers that let the page read them. So do
 * responses to paths below the prefix of the group that match no route. A response that depends on the header
 * Origin has `Vary: Origin`.
 *
 * CORS does not protect the server: requests from other origins are handled, and only the browser withholds
 * the response from the page. Use duda_csrf_check() for routes that change data for a logged-in user.
 */
struct duda_cors {
    /** Origins, separated by spaces: "https://app.example.org http://localhost:3000". A host that begins with
     * `*.`, such as `*.example.org`, matches all subdomains of example.org, but not example.org
     * itself. "*": every origin. */
    const char *origins;
    const char *headers;  /**< request headers that pages may set: "Authorization, Content-Type"; NULL: all */
    const char *expose;   /**< response headers that pages may read besides the safelisted ones; NULL: none */
    uint32_t max_age_s;   /**< how long browsers may cache a preflight response, in seconds; 0: 10 minutes */
    bool credentials;     /**< pages may send cookies and Authorization; not with the origin "*" */
    uint64_t reserved[4]; /**< must be zero */
};

#ifdef __cplusplus
}
#endif

#endif
