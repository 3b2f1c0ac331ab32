module github.com/solonode/sno/tools/butane

go 1.26.2

tool github.com/coreos/butane/internal

require (
	github.com/aws/aws-sdk-go v1.30.28 // indirect
	github.com/clarketm/json v1.17.1 // indirect
	github.com/coreos/butane v0.17.0 // indirect
	github.com/coreos/go-json v0.0.0-20220810161552-7cce03887f34 // indirect
	github.com/coreos/go-semver v0.3.0 // indirect
	github.com/coreos/go-systemd/v22 v22.5.0 // indirect
	github.com/coreos/ignition/v2 v2.14.0 // indirect
	github.com/coreos/vcontext v0.0.0-20220810162454-88bd546c634c // indirect
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	github.com/spf13/pflag v1.0.6-0.20210604193023-d5e0c0615ace // indirect
	github.com/stretchr/testify v1.8.1 // indirect
	github.com/vincent-petithory/dataurl v1.0.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)
