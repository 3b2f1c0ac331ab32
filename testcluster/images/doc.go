// Package images writes container images around static binaries: no base image, no engine, and the same image, by its digest, for the same files. The order
// of images in an archive is the library's, and no order at all.
package images
