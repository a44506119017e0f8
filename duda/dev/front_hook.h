/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin in the front server. Each request waits until `monkey run` lets it pass, and a page that
 * explains the failure replaces a failed response. */
#ifndef DUDA_DEV_FRONT_HOOK_H
#define DUDA_DEV_FRONT_HOOK_H

#include <monkey/access_record.h>
#include <monkey/plugin.h>

struct dev_front_hook {
    const char *socket_path; /* path of the socket */
    mk_str names;            /* accepted host names, besides those of this machine */
};

enum mk_verdict dev_front_hook_on_request(const struct dev_front_hook *g, struct mk_request *request,
                                          struct mk_response *response);
void dev_front_hook_on_response(const struct dev_front_hook *g, struct mk_request *request,
                                struct mk_response *response);
/* Prints a line about the finished request on standard output, which `monkey run` forwards to its own. */
void dev_front_hook_on_done(const struct mk_access_record *record);

#endif
