module monkey-arena

go 1.25.0

require github.com/valyala/fasthttp v1.78.0
