// Package apply writes patches with server-side apply, and takes them off again.
//
// It upholds the ownership rules of the project: a patch only ever touches an object that exists, known by its UID
// (U-SSA-7); it never takes a field from a person or an unknown tool (R-SNO-5); it takes creation-time defaults only
// from a short list of managers that each module documents, and remembers them in an annotation in the same request; it
// sends nothing when nothing would change (R-SNO-4); when it is released it restores what it took (R-SNO-6); and when
// somebody takes the patch off again it stops instead of fighting (R-SNO-9).
//
// A patch can also make fields absent, under the same rules. What the API server does then depends on the type, and was seen on
// Kubernetes 1.36:
//
//   - Built-in types take null in an applied body: the field goes, and its absence has an owner in the managedFields. It stays
//     owned until somebody writes the field, also when the maps around it go. Emptied maps stay ("podAntiAffinity: {}").
//   - Custom resources refuse null, and keep an empty list or map as a value. A merge patch removes the field, after the request
//     that remembers it. Nobody owns the absence, so the annotation has an entry of our own beside the remembered one, with null
//     as the value.
//   - null does nothing to a map or list whose members have owners of their own, and a field with a default comes back at once.
//
// The intent is an apply configuration, never a typed object: a typed object would claim every field without omitempty (U-SSA-6).
package apply
