/* SPDX-License-Identifier: Apache-2.0 */
/* In the server in front: each request waits until `monkey run` lets it pass, and a response that never came
 * becomes a page that says why. */
#ifndef DUDA_DEV_GATE_H
#define DUDA_DEV_GATE_H

#include <monkey/plugin.h>

struct dev_gate {
    const char *desk; /* path of the socket */
    mk_str names;     /* that it answers for, beside those of this machine */
};

enum mk_verdict dev_gate_ask(const struct dev_gate *g, struct mk_request *request,
                             struct mk_response *response);
void dev_gate_mend(const struct dev_gate *g, struct mk_request *request, struct mk_response *response);

#endif
