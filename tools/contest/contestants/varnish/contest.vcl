# SPDX-License-Identifier: Apache-2.0
vcl 4.1;

# @behind_name@
backend files {
    .host = "127.0.0.1";
    .port = "@behind@";
}

sub vcl_recv {
    if (req.url == "@dynamic@") {
        return (synth(200));
    }
}

sub vcl_synth {
    if (resp.status == 200) {
        set resp.http.Content-Type = "text/plain";
        synthetic("@hello@");
        return (deliver);
    }
}

sub vcl_backend_response {
    set beresp.ttl = 1h;
}
