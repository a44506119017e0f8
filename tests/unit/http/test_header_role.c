/* SPDX-License-Identifier: Apache-2.0 */
#include "http/header_role.h"

#include "unit/test.h"

struct names {
    enum mk_header_role role;
    const char *names[32];
};

static void check(const struct names *cases, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (const char *const *name = cases[i].names; *name; name++)
            if (mk_header_role(mk_str_from_c(*name)) != cases[i].role)
                fail_msg("%s is not of role %d", *name, (int)cases[i].role);
}

static void header_role_of_known_names(void **state)
{
    (void)state;
    static const struct names cases[] = {
        {MK_ROLE_HOP,
         {"TE", "Trailer", "upgrade", "Expect", "Keep-Alive", "Proxy-Connection", "HTTP2-Settings", NULL}},
        {MK_ROLE_CONNECTION, {"Connection", "CONNECTION", NULL}},
        {MK_ROLE_FRAMING, {"Content-Length", "transfer-encoding", NULL}},
        {MK_ROLE_HOST, {"Host", "host", NULL}},
        {MK_ROLE_VIA, {"Via", NULL}},
        {MK_ROLE_MAX_FORWARDS, {"Max-Forwards", NULL}},
        {MK_ROLE_DESTINATION, {"Destination", "destination", NULL}},
        {MK_ROLE_FORWARDED,
         {"Forwarded",
          "X-Forwarded-For",
          "x-forwarded-proto",
          "X-Forwarded-Host",
          "X-Forwarded-Port",
          "X-Forwarded-Server",
          "X-Forwarded-Prefix",
          "X-Forwarded-A-Name-That-Is-Longer-Than-Any-Other",
          "X-Real-IP",
          "X-Original-URL",
          "X-Original-URI",
          "X-Original-Method",
          "X-Rewrite-URL",
          "X-Original-Host",
          "X-Host",
          "X-Scheme",
          "X-URL-Scheme",
          "X-Forwarded",
          "Forwarded-For",
          "Client-IP",
          "X-Client-IP",
          "X-Cluster-Client-IP",
          "Front-End-Https",
          "X-Sendfile-Type",
          "X-Accel-Mapping",
          NULL}},
        {MK_ROLE_CERTIFICATE, {"Client-Cert", "client-cert-chain", NULL}},
        {MK_ROLE_NONE, {"Proxy", "PROXY", "Proxy-Authorization", NULL}},
    };
    check(cases, MK_LEN(cases));
}

static void header_role_none_for_lookalikes(void **state)
{
    (void)state;
    static const struct names cases[] = {
        {MK_ROLE_NONE,
         {"X_Forwarded_For", "X-Forwarded_For", "x.forwarded.for", "X_Real_IP", "X_Original_URL",
          "Client_Cert", "Client_Cert_Chain", "Content_Length", "Transfer_Encoding", "Transfer.Encoding",
          "Max_Forwards", "Proxy_Authorization", "Keep_Alive", "X_Forwarded_Anything_That_Is_Long",
          "X!Real~IP", "Client_IP", "Front_End_Https", "Forwarded_For", NULL}},
    };
    check(cases, MK_LEN(cases));
}

static void header_role_client_for_other_names(void **state)
{
    (void)state;
    static const struct names cases[] = {
        {MK_ROLE_CLIENT,
         {"Accept", "Cookie", "Authorization", "X-User", "X-Forwarde", "X-Hosts", "From", "Client-IPs",
          "Xx-Real-IP", "X-Real-IPs", "Client-Certs", "Prox", "Proxy-", "X.Dot", "X",
          "Client-Cert-Chain-That-Is-Longer", "X-Original-URLs", NULL}},
        {MK_ROLE_UNDERSCORE, {"X_User", "_", "_Host", "Via_", "Content_Type", "X.Dot_", NULL}},
    };
    check(cases, MK_LEN(cases));
    assert_int_equal(mk_header_role(MK_STR("")), MK_ROLE_CLIENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_role_of_known_names),
        cmocka_unit_test(header_role_none_for_lookalikes),
        cmocka_unit_test(header_role_client_for_other_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
