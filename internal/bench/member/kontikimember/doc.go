// Program kontikimember is a member of a Kontiki store that internal/bench/compare starts and loads.
package main
