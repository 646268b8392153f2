// Package testcluster runs a real store and API server inside a test, on a free loopback port and a
// temporary directory: what controllers, scheduler and node agent are tested against. There are no
// mocks in it.
//
//	c := testcluster.Start(t)
//	c.Go("scheduler", func(ctx context.Context) error {
//		return scheduler.Run(ctx, scheduler.Config{REST: c.REST(pki.Scheduler)})
//	})
//
// It imports none of the API's clients, so that their own tests can use it. Everything ends with the
// test; what was started last ends first. With KONTIKI_TEST_LOG=debug (or info) the components log
// to standard error.
package testcluster
