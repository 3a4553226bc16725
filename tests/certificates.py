"""Certificate authorities and server certificates of a test's own."""

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

SINCE, UNTIL = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Authority:
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    path: Path


def _name(text_: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text_)])


def _builder(subject: str, issuer: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(SINCE)
        .not_valid_after(UNTIL)
    )


def new_authority(path: Path, name: str) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        _builder(name, name, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(own, critical=False)
        .sign(key, hashes.SHA256())
    )
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return Authority(key, certificate, path)


def server_options(folder: Path, authority: Authority) -> tuple[str, ...]:
    """The database server's, with a certificate for 127.0.0.1 only, not for localhost."""
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate, key = server_certificate(folder, authority, address)
    return (f"--ssl-ca={authority.path}", f"--ssl-cert={certificate}", f"--ssl-key={key}")


def server_certificate(folder: Path, authority: Authority, name: x509.GeneralName) -> tuple[Path, Path]:
    """The files of a certificate for that name, and of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    certificate = (
        _builder("server", "ours", key)
        .add_extension(x509.SubjectAlternativeName([name]), critical=False)
        .add_extension(issuer, critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    certificate_path, key_path = folder / "server.pem", folder / "server.key"
    certificate_path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    return certificate_path, key_path
