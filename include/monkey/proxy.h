/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that another process of the same server answers, as if it were a part of this one. The functions
 * are in monkey-proxy.so. */
#ifndef MONKEY_PROXY_H
#define MONKEY_PROXY_H

#include <errno.h>
#include <monkey/plugin.h>
#include <monkey/text.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * These functions belong to the plugin `proxy`. A plugin that calls them names it in `needs`, and links its
 * object with monkey-proxy.so, as monkey/upstream.h describes for that plugin.
 */

/** A part of the server in processes of its own, which listen on a unix socket. */
struct mk_proxy_part;

/**
 * Finds it by its socket, "unix:/path". From load() or host(). It lives as long as the configuration.
 * `secret` proves to the part that a request comes from this server (mk_proxy_is_proven()); it is copied, and may be absent.
 * `wait_ms`: how long a response may take to begin (504); 0: no limit. NULL: the path is wrong, or memory is
 * out, which has been reported at `key` of the section.
 */
MK_API struct mk_proxy_part *mk_proxy_part_open(struct mk_config *config, const void *section,
                                                const char *key, mk_str socket, mk_str secret,
                                                uint32_t wait_ms);
/**
 * The handle() of a handler: passes the request to that part, and answers what the part does. The part gets
 * the fields of the client as they are, and three more, MK_PROXY_CLIENT, MK_PROXY_BODY_MAX and MK_PROXY_PROOF, which a
 * client cannot send. It answers a 404 with the field MK_PROXY_PASSES where its handlers have answered MK_NEXT: then so does this function,
 * unless the request had content. A request whose connection fails is tried again as by the handler `proxy`.
 *
 *     static enum mk_verdict handle(struct mk_request *request, struct mk_response *response, void *data)
 *     {
 *         return mk_proxy_part_handle(request, response, data);
 *     }
 */
MK_API enum mk_verdict mk_proxy_part_handle(struct mk_request *request, struct mk_response *response,
                                            struct mk_proxy_part *part);

/** What is known of the client: "ADDRESS PORT SCHEME /SITE", and behind a blank the user that hooks have found.
 * The address of a client on a unix socket is "unix:"; SITE is mk_request_site_name(), escaped as a URL is. */
#define MK_PROXY_CLIENT "Monkey-Client"
enum {
    MK_PROXY_SITE_MAX = 4096 /**< bytes of SITE */
};
/** In that part, from on_request: takes over what MK_PROXY_CLIENT says, of a request that is proven. 0 or a
 * negated errno value. */
static inline int mk_proxy_take_client(struct mk_request *request)
{
    struct mk_peer peer;
    uint64_t port;
    mk_str rest = mk_request_field(request, MK_STR(MK_PROXY_CLIENT)), address = mk_str_cut(&rest, ' '),
           number = mk_str_cut(&rest, ' '), scheme = mk_str_cut(&rest, ' '), site = mk_str_cut(&rest, ' ');
    struct mk_buf name = mk_buf_growing(MK_PROXY_SITE_MAX);
    int e = mk_url_unescape(&name, mk_str_skip(site, 1)) && !name.failed
                ? mk_request_set_site_name(request, mk_buf_str(&name))
                : -EBADMSG;
    mk_buf_free(&name);
    if (!e && mk_peer_parse(address, &peer) && mk_num_parse(number, &port)) {
        peer.port = MK_API_CAST(uint16_t, port);
        e = mk_request_set_address(request, &peer);
    }
    mk_request_set_secure(request, mk_str_eq(scheme, MK_STR("https")));
    return !e && rest.len ? mk_request_set_user(request, rest) : e;
}
/** The most bytes of content where the part has no limit of its own; UINT64_MAX: no limit. */
#define MK_PROXY_BODY_MAX "Monkey-Body-Max"
/** In hexadecimal digits, what mk_proxy_prove() makes of these two. */
#define MK_PROXY_PROOF "Monkey-Proof"
static inline void mk_proxy_prove(mk_str secret, mk_str client, mk_str body_max, char out[32])
{
    char key[32];
    mk_hmac_sha256(secret, mk_str_trim(client), key);
    mk_hmac_sha256(mk_str_of(key, sizeof key), mk_str_trim(body_max), out);
}
/** In that part: was the request passed on by a server that knows the secret? Another process of the same user may
 * connect to the socket, too, and claim to speak for any client. */
static inline bool mk_proxy_is_proven(struct mk_request *request, mk_str secret)
{
    char proof[32];
    char text[2 * sizeof proof];
    struct mk_buf hex = mk_buf_fixed(text, sizeof text);
    mk_proxy_prove(secret, mk_request_field(request, MK_STR(MK_PROXY_CLIENT)),
                   mk_request_field(request, MK_STR(MK_PROXY_BODY_MAX)), proof);
    mk_hex_encode(&hex, mk_str_of(proof, sizeof proof));
    return mk_secret_eq(mk_buf_str(&hex), mk_request_field(request, MK_STR(MK_PROXY_PROOF)));
}
/** The part has no answer of its own. */
#define MK_PROXY_PASSES "Monkey-Passes"

#ifdef __cplusplus
}
#endif

#endif
