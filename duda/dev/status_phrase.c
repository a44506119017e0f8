/* SPDX-License-Identifier: Apache-2.0 */
#include "status_phrase.h"

#include <monkey/str.h>

const char *dev_status_phrase(unsigned status)
{
    static const struct {
        unsigned status;
        const char *phrase;
    } known[] = {{200, "OK"},
                 {201, "Created"},
                 {202, "Accepted"},
                 {204, "No Content"},
                 {206, "Partial Content"},
                 {301, "Moved Permanently"},
                 {302, "Found"},
                 {303, "See Other"},
                 {304, "Not Modified"},
                 {400, "Bad Request"},
                 {401, "Unauthorized"},
                 {403, "Forbidden"},
                 {404, "Not Found"},
                 {405, "Method Not Allowed"},
                 {406, "Not Acceptable"},
                 {408, "Request Timeout"},
                 {409, "Conflict"},
                 {410, "Gone"},
                 {412, "Precondition Failed"},
                 {411, "Length Required"},
                 {413, "Content Too Large"},
                 {414, "URI Too Long"},
                 {415, "Unsupported Media Type"},
                 {422, "Unprocessable Content"},
                 {429, "Too Many Requests"},
                 {431, "Request Header Fields Too Large"},
                 {500, "Internal Server Error"},
                 {501, "Not Implemented"},
                 {502, "Bad Gateway"},
                 {503, "Service Unavailable"},
                 {504, "Gateway Timeout"},
                 {507, "Insufficient Storage"}};
    for (size_t i = 0; i < MK_LEN(known); i++)
        if (known[i].status == status)
            return known[i].phrase;
    return "";
}
