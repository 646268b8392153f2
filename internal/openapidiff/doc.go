// Package openapidiff compares what two API servers say of the same types in their OpenAPI documents: properties, types,
// formats, defaults, required fields, enums and every x-kubernetes extension must be equal. Descriptions are only asked
// to be there, because their words are free.
package openapidiff
