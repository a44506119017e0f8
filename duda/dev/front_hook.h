/* SPDX-License-Identifier: Apache-2.0 */
/* In the server in front: each request waits until `monkey run` lets it pass, and a response that never came
 * becomes a page that says why. */
#ifndef DUDA_DEV_FRONT_HOOK_H
#define DUDA_DEV_FRONT_HOOK_H

#include <monkey/plugin.h>

struct dev_front_hook {
    const char *desk; /* path of the socket */
    mk_str names;     /* that it answers for, beside those of this machine */
};

enum mk_verdict dev_front_hook_on_request(const struct dev_front_hook *g, struct mk_request *request,
                                          struct mk_response *response);
void dev_front_hook_on_response(const struct dev_front_hook *g, struct mk_request *request,
                                struct mk_response *response);

#endif
