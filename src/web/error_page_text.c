/* SPDX-License-Identifier: Apache-2.0 */
#include "web/error_page_text.h"

#include <monkey/http.h>

#include "base/compiler.h"

/* Covers every registered error status. */
static const struct {
    unsigned status;
    const char *text;
    const char *detail; /* for developers, without advice to visitors; NULL: `text` */
} explanations[] = {
    {400, "The request was not valid HTTP.", NULL},
    {401, "This page needs a user name and a password, and they were missing or wrong.",
     "The request lacks valid credentials."},
    {402, "This page requires payment.", "The resource requires payment."},
    {403, "You are not allowed to see this page, or it is a folder without an index page.",
     "The client may not access this resource."},
    {404, "There is nothing at this address.", "The resource does not exist."},
    {405, "This address does not support that method.", "The resource does not support this method."},
    {406, "This page does not exist in a form that your browser accepts.",
     "The resource has no representation that the client accepts."},
    {407, "A proxy on the way requires a user name and a password.", "A proxy requires credentials."},
    {408, "The request took too long to arrive.", NULL},
    {409, "This was changed from elsewhere at the same time. Load it again.",
     "The request conflicts with the current state of the resource."},
    {410, "This page was here, and is gone for good.", "The resource is permanently gone."},
    {411, "The request must state the length of its content.",
     "The request must state the length of its body."},
    {412, "This has changed since you last loaded it. Load it again.",
     "A precondition of the request is false."},
    {413, "The request is larger than this server allows.",
     "The request body is larger than the server allows."},
    {414, "The address is longer than this server allows.", "The URL is longer than the server allows."},
    {415, "The server cannot use content of this type.",
     "The server does not support the media type of the request body."},
    {416, "The requested part does not exist. Start the download again.",
     "The requested range does not exist."},
    {417, "The request expects something that this server does not support.", NULL},
    {421, "This connection was made for another name. Open the page in a new connection.",
     "The server is not configured for this host on this connection."},
    {422, "The request is well formed, but the server cannot process its content.", NULL},
    {423, "This is locked at the moment. Try again later.", "The resource is locked."},
    {424, "Another operation that this one depends on has failed.",
     "The request depends on another request, which failed."},
    {425, "The request arrived before the connection was secure. Try again.",
     "The request may be a replay: repeat it after the TLS handshake."},
    {426, "The server requires a newer protocol for this.", "The server requires another protocol."},
    {428, "The request must state which version it changes.", "The request must be conditional."},
    {429, "Too many requests. Wait a moment and try again.", "The client has sent too many requests."},
    {431,
     "The headers of the request are larger than this server allows. Deleting the cookies of this "
     "site may help.",
     "The request headers are larger than the server allows."},
    {451, "This page is unavailable for legal reasons.", "The resource is unavailable for legal reasons."},
    {500, "Something is broken on this site. Try again in a few minutes.",
     "The server encountered an unexpected condition."},
    {501, "This server does not support that.", "The server does not support this request."},
    {502, "This site has a problem. Try again in a few minutes.",
     "A backend of the server responded with an error."},
    {503, "This site is busy, or down for maintenance. Try again in a few minutes.",
     "The server is overloaded or down for maintenance."},
    {504, "This site takes too long to respond. Try again in a few minutes.",
     "The server did not complete the request in time."},
    {505, "This server does not support that version of HTTP.",
     "The server does not support this version of HTTP."},
    {506, "The configuration of the server refers back to itself.", NULL},
    {507, "There is no space left to store this.", NULL},
    {508, "The server detected an endless loop.", NULL},
    {510, "The request lacks an extension that this server requires.", NULL},
    {511, "Sign in to this network first: open any page without https.",
     "The client must sign in to the network."},
};

static const char *default_explanation(unsigned status)
{
    return status < 400   ? "The server responded with this status and no further explanation."
           : status < 500 ? "The server cannot respond to this request."
                          : "The server failed to respond to this request.";
}

const char *mk_error_page_explanation(unsigned status)
{
    for (size_t i = 0; i < MK_LEN(explanations); i++)
        if (explanations[i].status == status)
            return explanations[i].text;
    return default_explanation(status);
}

mk_str mk_status_detail(unsigned status)
{
    for (size_t i = 0; i < MK_LEN(explanations); i++)
        if (explanations[i].status == status && explanations[i].detail)
            return mk_str_from_c(explanations[i].detail);
    return mk_str_from_c(mk_error_page_explanation(status));
}

/* Colors and the monkey of the welcome page (site/style.css), minified because every error page contains
 * them. */
const char mk_error_page_style[] =
    ":root{color-scheme:light dark;--g:#fdf9f2;--i:#2c2018;--s:#6d5a4a}"
    "@media(prefers-color-scheme:dark){:root{--g:#17110d;--i:#f5eadb;--s:#bda893}}"
    "body{display:grid;place-content:center;justify-items:center;min-height:100vh;min-height:100svh;"
    "box-sizing:border-box;margin:0;padding:1.5rem;background:var(--g);color:var(--s);"
    "font:1.1rem/1.6 system-ui,sans-serif;text-align:center;text-wrap:balance}"
    "h1{margin:1.5rem 0 .5rem;color:var(--i);font-size:clamp(2rem,6vw,3rem);line-height:1.1;"
    "letter-spacing:-.03em}p{max-width:30rem;margin:0 0 1rem}small{font-size:.8rem}";
const char mk_error_page_picture[] =
    "<svg viewBox=\"0 0 64 60\" width=\"128\" aria-hidden=\"true\"><g fill=\"#8a5a33\"><circle cx=\"9\" "
    "cy=\"32\" "
    "r=\"9\"/><circle cx=\"55\" cy=\"32\" r=\"9\"/><circle cx=\"32\" cy=\"30\" r=\"25\"/></g><g "
    "fill=\"#f3cfa0\">"
    "<circle cx=\"24\" cy=\"27\" r=\"10\"/><circle cx=\"40\" cy=\"27\" r=\"10\"/><ellipse cx=\"32\" "
    "cy=\"40\" "
    "rx=\"17\" ry=\"12\"/></g><g fill=\"#2c2018\"><circle cx=\"25\" cy=\"28\" r=\"3\"/><circle cx=\"39\" "
    "cy=\"28\" r=\"3\"/><path d=\"M23 46q9-7 18 0q-9-4-18 0\"/></g></svg>";
