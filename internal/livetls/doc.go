// Package livetls lets servers and clients of long-lived processes follow certificates that are renewed while they run.
//
// A server's tls.Config follows by GetConfigForClient, which Server keeps working when a server wants some fields its own
// way. A client's has no such hook: Transport makes a new http.Transport when the configuration has become another one.
// Requests that run end on the connections on which they began, which then idle out: nobody is cut off.
package livetls
