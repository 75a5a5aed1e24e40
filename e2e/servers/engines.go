package servers

import (
	"context"
	"net/url"
	"path/filepath"
)

const owner = "vernier"

// URL returns the address of a database, with the password.
func (s *Server) URL(database string) string {
	u := url.URL{Scheme: s.engine.scheme, User: url.UserPassword(owner, Password), Host: "127.0.0.1:" + s.portText(), Path: "/" + database}
	return u.String()
}

// Create makes a database.
func (s *Server) Create(ctx context.Context, database string) error {
	return s.Admin(ctx, "CREATE DATABASE "+database)
}

// Admin runs a statement as the server's owner.
func (s *Server) Admin(ctx context.Context, statement string) error {
	return s.AdminIn(ctx, s.engine.system, statement)
}

// AdminIn runs a statement in a database as the server's owner.
func (s *Server) AdminIn(ctx context.Context, database, statement string) error {
	return s.run(ctx, s.engine.admin(s, database, statement)...)
}

func postgres() engine {
	return engine{
		scheme: "postgres", system: "postgres", pack: "postgresql",
		programs: []string{"initdb", "postgres", "psql"},
		initialize: func(s *Server) []string {
			return []string{"initdb", "--pgdata", filepath.Join(s.dir, "data"), "--username", owner,
				"--pwfile", filepath.Join(s.dir, "password"), "--auth-host", "scram-sha-256", "--auth-local", "trust",
				"--encoding", "UTF8", "--no-locale"}
		},
		serve: func(s *Server) []string {
			return []string{"postgres", "-D", filepath.Join(s.dir, "data"), "-k", s.dir, "-p", s.portText(),
				"-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200"}
		},
		admin: func(s *Server, database, statement string) []string {
			return []string{"psql", "--no-psqlrc", "-v", "ON_ERROR_STOP=1", "-h", s.dir, "-p", s.portText(), "-U", owner, "-d", database, "-c", statement}
		},
		setup: "SELECT 1",
	}
}

func mariadb() engine {
	return engine{
		scheme: "mysql", system: "mysql", pack: "mariadb-server",
		programs: []string{"mariadb-install-db", "mariadbd", "mariadb"},
		initialize: func(s *Server) []string {
			return []string{"mariadb-install-db", "--no-defaults", "--datadir=" + filepath.Join(s.dir, "data"),
				"--auth-root-authentication-method=normal", "--skip-test-db"}
		},
		serve: func(s *Server) []string {
			return []string{"mariadbd", "--no-defaults", "--datadir=" + filepath.Join(s.dir, "data"), "--socket=" + filepath.Join(s.dir, "sock"),
				"--port=" + s.portText(), "--bind-address=127.0.0.1", "--pid-file=" + filepath.Join(s.dir, "pid")}
		},
		admin: func(s *Server, database, statement string) []string {
			return []string{"mariadb", "--no-defaults", "--socket=" + filepath.Join(s.dir, "sock"), "--user=root", "-e", statement, database}
		},
		setup: "CREATE USER " + owner + "@'127.0.0.1' IDENTIFIED BY " + quoteSQL(Password) +
			"; GRANT ALL ON *.* TO " + owner + "@'127.0.0.1'",
	}
}
