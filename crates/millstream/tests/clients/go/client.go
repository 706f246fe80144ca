// A client of HTTP/2 that checks its answers: client ADDRESS CA LARGE, where LARGE is the file that /large.bin is.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"sync"
	"time"
)

const host = "https://a.example"

func fail(format string, values ...any) {
	fmt.Printf(format+"\n", values...)
	os.Exit(1)
}

func check(err error) {
	if err != nil {
		fail("%v", err)
	}
}

// Asks, and reads the whole answer.
func ask(client *http.Client, request *http.Request) (*http.Response, []byte) {
	response, err := client.Do(request)
	check(err)
	content, err := io.ReadAll(response.Body)
	check(err)
	check(response.Body.Close())
	if response.ProtoMajor != 2 {
		fail("%s: %s", request.URL, response.Proto)
	}
	return response, content
}

func newRequest(method, path string, content io.Reader) *http.Request {
	request, err := http.NewRequest(method, host+path, content)
	check(err)
	return request
}

func pattern(size int) []byte {
	content := make([]byte, size)
	for index := range content {
		content[index] = byte(index % 251)
	}
	return content
}

// A reader whose length net/http cannot know.
type unmeasured struct{ io.Reader }

func small(client *http.Client) {
	for _, expected := range []struct {
		method, path string
		status       int
		content      string
		length       int64
	}{
		{"GET", "/values", 200, "TLSv1.3 HTTP/2.0 a.example", 26},
		{"GET", "/index.html", 200, "hello\n", 6},
		{"GET", "/index.html", 200, "hello\n", 6},
		{"GET", "/zero", 200, "", 0},
		{"GET", "/nothing", 204, "", 0},
		{"HEAD", "/large.bin", 200, "", 12000000},
		{"HEAD", "/behind/echo", 200, "", 0},
		{"POST", "/behind/echo", 200, "", 0},
	} {
		response, content := ask(client, newRequest(expected.method, expected.path, nil))
		if response.StatusCode != expected.status || string(content) != expected.content || response.ContentLength != expected.length {
			fail("%v: %v %q", expected, response, content)
		}
	}
}

func informed(client *http.Client) {
	var codes []int
	trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, fields textproto.MIMEHeader) error {
		codes = append(codes, code)
		return nil
	}}
	request := newRequest("GET", "/behind/hints", nil)
	_, content := ask(client, request.WithContext(httptrace.WithClientTrace(context.Background(), trace)))
	if string(content) != "hinted" || fmt.Sprint(codes) != "[103]" {
		fail("%q behind %v", content, codes)
	}
	request = newRequest("GET", "/behind/trailers", nil)
	request.Header.Set("TE", "trailers")
	response, content := ask(client, request)
	if string(content) != "firstlast" || response.Trailer.Get("X-Sum") != "7" {
		fail("%q with trailers %v", content, response.Trailer)
	}
}

func uploads(client *http.Client) {
	for _, path := range []string{"/behind/echo", "/streamed/echo"} {
		for _, size := range []int{0, 1, 100000, 3000000} {
			for _, kind := range []string{"measured", "unmeasured", "with trailers", "after 100"} {
				sent := pattern(size)
				request := newRequest("POST", path, bytes.NewReader(sent))
				switch kind {
				case "unmeasured":
					request = newRequest("POST", path, unmeasured{bytes.NewReader(sent)})
				case "with trailers":
					request = newRequest("POST", path, unmeasured{bytes.NewReader(sent)})
					request.Trailer = http.Header{"X-Sum": []string{"9"}}
				case "after 100":
					request.Header.Set("Expect", "100-continue")
				}
				response, content := ask(client, request)
				if response.StatusCode != 200 || !bytes.Equal(content, sent) {
					fail("%s of %d bytes %s: %v, %d bytes", path, size, kind, response, len(content))
				}
			}
		}
	}
}

// Runs many at once.
func together(count int, run func(number int)) {
	var all sync.WaitGroup
	for number := 0; number < count; number++ {
		all.Add(1)
		go func(number int) {
			defer all.Done()
			run(number)
		}(number)
	}
	all.Wait()
}

func main() {
	address, authority, large := os.Args[1], os.Args[2], os.Args[3]
	roots := x509.NewCertPool()
	text, err := os.ReadFile(authority)
	check(err)
	roots.AppendCertsFromPEM(text)
	whole, err := os.ReadFile(large)
	check(err)
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		TLSClientConfig:       &tls.Config{RootCAs: roots},
		ForceAttemptHTTP2:     true,
		ExpectContinueTimeout: 10 * time.Second,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}}
	small(client)
	informed(client)
	uploads(client)
	// Beyond the number of streams that the server allows, net/http would open a connection for each.
	for round := 0; round < 10; round++ {
		together(100, func(number int) {
			paths := []string{"/index.html", "/zero", "/values", "/nothing"}
			response, _ := ask(client, newRequest("GET", paths[number%4], nil))
			if response.StatusCode/100 != 2 {
				fail("%v", response)
			}
		})
	}
	together(4, func(int) {
		_, content := ask(client, newRequest("GET", "/large.bin", nil))
		if !bytes.Equal(content, whole) {
			fail("%d bytes of a large file", len(content))
		}
	})
	// A download that is given up.
	response, err := client.Do(newRequest("GET", "/large.bin", nil))
	check(err)
	check(response.Body.Close())
	// The server ends a connection after every third: others are opened, and nothing fails.
	for number := 0; number < 40; number++ {
		_, content := ask(client, newRequest("GET", "/few", nil))
		if string(content) != "few" {
			fail("%q", content)
		}
	}
	together(40, func(int) { ask(client, newRequest("GET", "/few", nil)) })
	fmt.Println("all is well")
}
