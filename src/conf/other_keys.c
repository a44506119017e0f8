/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/other_keys.h"

struct equivalent {
    const char *hint;
    const char *keys; /* separated by blanks */
};

static const struct equivalent equivalents[] = {
    {"use `DocumentRoot FOLDER` in [HOST]", "root"},
    {"use `Alias /path/ FOLDER` in [HOST]", "handle_path uri AliasMatch ScriptAlias"},
    {"use `Listen PORT` in [SERVER], or `Listen PORT tls` for HTTPS",
     "bind http_port https_port SSLEngine ssl"},
    {"use `ServerName` in [HOST]; several names are separated by blanks",
     "ServerAlias server_alias hostname"},
    {"begin a section [HOST] for each virtual host", "server frontend VirtualHost"},
    {"use `Index`", "DirectoryIndex"},
    {"write `PATTERN HANDLER` in [ROUTES], such as `/api/*  proxy http://127.0.0.1:3000`; limits of a path "
     "belong in [LOCATION]",
     "location LocationMatch handle route Directory DirectoryMatch"},
    {"add `Load proxy` to [PLUGINS], and write `/*  proxy http://127.0.0.1:3000` in [ROUTES]",
     "proxy_pass reverse_proxy ProxyPass ProxyPassMatch ProxyPassReverse default_backend use_backend"},
    {"write `/*  proxy h2c://127.0.0.1:50051` in [ROUTES], and add `Load proxy` to [PLUGINS]", "grpc_pass"},
    {"add `Load fastcgi` to [PLUGINS], and write `*.php  fastcgi unix:/run/php/php-fpm.sock` in [ROUTES]",
     "fastcgi_pass php_fastcgi fastcgi_index fastcgi_param SetHandler AddHandler"},
    {"add `Load uwsgi` to [PLUGINS], and write `/*  uwsgi unix:/run/app.sock` in [ROUTES]", "uwsgi_pass"},
    {"add `Load scgi` to [PLUGINS], and write `/*  scgi unix:/run/app.sock` in [ROUTES]", "scgi_pass"},
    {"begin a section [UPSTREAM] with `Name` and a line `Server ADDRESS:PORT` for each server, and write "
     "`proxy http://NAME` in [ROUTES]",
     "upstream backend BalancerMember default-server"},
    {"use `Balance` in [UPSTREAM]", "least_conn ip_hash lb_policy"},
    {"use `HealthCheck /path` in [UPSTREAM]", "health_check health_uri httpchk option"},
    {"write `connect_timeout=`, `response_timeout=` or `read_timeout=` after the server in [ROUTES]",
     "proxy_connect_timeout proxy_read_timeout proxy_send_timeout ProxyTimeout fastcgi_read_timeout"},
    {"write `intercept_errors=5xx` after the server in [ROUTES]",
     "proxy_intercept_errors ProxyErrorOverride fastcgi_intercept_errors"},
    {"add `Load headers` to [PLUGINS], and write `Set NAME VALUE` in [REQUEST_HEADERS]",
     "proxy_set_header RequestHeader header_up request_header"},
    {"add `Load headers` to [PLUGINS], and write `Set NAME VALUE` in [HEADERS]",
     "add_header Header header header_down http-response more_set_headers"},
    {"use `Certificate FILE KEYFILE` in [SERVER] or [HOST]",
     "tls crt ssl_certificate ssl_certificate_key SSLCertificateFile SSLCertificateKeyFile "
     "SSLCertificateChainFile"},
    {"use `TLSVersion`", "ssl_protocols SSLProtocol protocols ssl-min-ver"},
    {"use `TLSCiphers` or `TLSSuites`", "ssl_ciphers SSLCipherSuite ciphers"},
    {"use `ClientAuthority FILE` and `ClientCertificates required`",
     "ssl_client_certificate ssl_verify_client SSLVerifyClient SSLCACertificateFile client_auth"},
    {"add `Load acme` to [PLUGINS], and `AgreeToTerms on` to [ACME]", "email MDomain acme_ca"},
    {"add `Load compress` to [PLUGINS], and an empty section [COMPRESS]",
     "gzip gzip_types gzip_min_length gzip_comp_level gzip_vary brotli brotli_types zstd encode "
     "AddOutputFilterByType"},
    {"`Precompressed` is on by default", "gzip_static brotli_static precompressed"},
    {"use `AccessLog FILE`", "access_log CustomLog TransferLog log"},
    {"use `ErrorLog FILE` in [SERVER]", "error_log"},
    {"add `Load logger` to [PLUGINS], and use `Format` in [LOGGER]", "log_format LogFormat"},
    {"use `MaxBodySize SIZE`", "client_max_body_size LimitRequestBody request_body"},
    {"use `HeaderTimeout` in [SERVER]", "client_header_timeout RequestReadTimeout"},
    {"use `MinRate`, the bytes per second that a client must send or receive",
     "client_body_timeout send_timeout reset_timedout_connection"},
    {"use `MaxHeaderSize` in [SERVER]", "large_client_header_buffers client_header_buffer_size"},
    {"use `Workers` in [SERVER]", "worker_processes nbthread nbproc StartServers"},
    {"use `MaxConnections` in [SERVER]", "worker_connections maxconn MaxRequestWorkers MaxClients"},
    {"use `FDLimit` in [SERVER]", "worker_rlimit_nofile"},
    {"use `PidFile` in [SERVER]", "pid"},
    {"use `HideVersion on` in [SERVER]", "server_tokens ServerTokens ServerSignature"},
    {"write `@INCLUDE FILE`", "include import IncludeOptional"},
    {"use `Fallback index.html` in [HOST]", "try_files FallbackResource"},
    {"add `Load rewrite` to [PLUGINS], and write rules in [REWRITE]",
     "rewrite RewriteRule RewriteCond RewriteEngine"},
    {"write `/old  redirect 301 /new` or `/health  status 200 ok` in [ROUTES]",
     "return redir respond RedirectMatch RedirectPermanent"},
    {"write `404  404.html` in [ERROR_PAGES]", "error_page ErrorDocument handle_errors errorfile"},
    {"write `*.png  max-age=86400` in [CACHE_CONTROL]", "expires ExpiresByType ExpiresActive ExpiresDefault"},
    {"add `Load auth` to [PLUGINS], and use [AUTH] with `Location` and `UserFile`",
     "auth_basic auth_basic_user_file basic_auth basicauth AuthType AuthName AuthUserFile"},
    {"add `Load forward-auth` to [PLUGINS], and use [FORWARD_AUTH] with `Location` and `URL`",
     "auth_request forward_auth"},
    {"add `Load security` to [PLUGINS], and write `Allow from ADDRESS` or `Deny from ADDRESS` in [SECURITY]",
     "allow deny Require Order remote_ip http-request"},
    {"write `When CONDITION` before a route, or `Deny CONDITION` in [SECURITY]", "if map acl SetEnvIf"},
    {"add `Load security` to [PLUGINS], and use `TrustedProxy` and `RealAddress` in [SECURITY]",
     "set_real_ip_from real_ip_header RemoteIPHeader trusted_proxies"},
    {"add `Load limits` to [PLUGINS], and use [LIMITS]",
     "limit_req limit_req_zone limit_conn limit_conn_zone limit_rate rate_limit"},
    {"add `Load dirlisting` to [PLUGINS], and an empty section [DIRLISTING]", "autoindex browse Options"},
    {"files are served without a key; in a host with [ROUTES], write `/*  static`", "file_server"},
    {"use `DefaultMimeType`, or [MIMETYPES]", "default_type types AddType"},
    {"use `Resolver` in [UPSTREAM]", "resolver"},
    {"use `GeoDatabase FILE` in [SERVER]", "geoip2 geoip_country"},
    {"add `Load metrics` to [PLUGINS]", "stub_status metrics stats"},
    {"`.htaccess` files have no effect; write their rules here", "AllowOverride AccessFileName"},
    {"the server does this by itself: remove the line",
     "sendfile tcp_nopush tcp_nodelay multi_accept aio ssl_session_cache ssl_prefer_server_ciphers "
     "proxy_http_version proxy_buffering open_file_cache server_names_hash_bucket_size use mode"},
};

static bool has_key(const char *keys, mk_str key)
{
    mk_str rest = mk_str_from_c(keys), word;
    while ((word = mk_str_word(&rest)).len)
        if (mk_str_eq_nocase(word, key))
            return true;
    return false;
}

const char *mk_conf_other_keys_hint(mk_str key)
{
    for (size_t i = 0; i < MK_LEN(equivalents); i++)
        if (has_key(equivalents[i].keys, key))
            return equivalents[i].hint;
    return NULL;
}
