# SPDX-License-Identifier: Apache-2.0
"""Test certificates, issued on demand and never stored in the tree.

    authority = make_authority(tmp_path)
    pair = authority.issue(["localhost", "127.0.0.1"])     # files: pair.certificate, pair.key
    client.connect(..., context=authority.client_context())
"""
import base64
import datetime
import hashlib
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509 import ocsp
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = datetime.timedelta(days=1)


@dataclass
class Pair:
    """The files of a certificate with its chain, and of its key."""
    certificate: Path
    key: Path
    x509: x509.Certificate

    @property
    def serial(self):
        return f"{self.x509.serial_number:X}"

    @property
    def key_hash(self):
        """The hash of the public key, in the format of Chromium's --ignore-certificate-errors-spki-list option."""
        key = self.x509.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        return base64.b64encode(hashlib.sha256(key).digest()).decode()

    @property
    def fingerprint(self):
        return self.x509.fingerprint(hashes.SHA256()).hex()


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def make_key(kind):
    return rsa.generate_private_key(65537, 2048) if kind == "rsa" else ec.generate_private_key(ec.SECP256R1())


def write_key(path, key):
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                       serialization.NoEncryption()))
    path.chmod(0o600)
    return path


def name_of(common_name):
    return x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "tests"),
                      x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def alternative(name):
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


class Authority:
    def __init__(self, folder, name="test authority"):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.key = make_key("ec")
        self.x509 = (x509.CertificateBuilder()
                     .subject_name(name_of(name)).issuer_name(name_of(name))
                     .public_key(self.key.public_key()).serial_number(x509.random_serial_number())
                     .not_valid_before(now() - 400 * DAY).not_valid_after(now() + 400 * DAY)
                     .add_extension(x509.BasicConstraints(ca=True, path_length=1), critical=True)
                     .add_extension(x509.KeyUsage(True, False, False, False, False, True, True, False, False), True)
                     .add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), False)
                     .sign(self.key, hashes.SHA256()))
        self.file = self.folder / "authority.pem"
        self.file.write_bytes(self.x509.public_bytes(serialization.Encoding.PEM))

    def issue(self, names=("localhost", "127.0.0.1"), kind="ec", days=90, file=None, client=False, since=1):
        """Issues the files FILE.pem and FILE.key; FILE defaults to the first name and the kind of key (localhost-ec). With a
        negative `days`, the certificate has expired."""
        key = make_key(kind)
        usage = ExtendedKeyUsageOID.CLIENT_AUTH if client else ExtendedKeyUsageOID.SERVER_AUTH
        begins = min(now() - since * DAY, now() + (days - 1) * DAY)
        certificate = (x509.CertificateBuilder()
                       .subject_name(name_of(names[0])).issuer_name(self.x509.subject)
                       .public_key(key.public_key()).serial_number(x509.random_serial_number())
                       .not_valid_before(begins).not_valid_after(now() + days * DAY)
                       .add_extension(x509.SubjectAlternativeName([alternative(n) for n in names]), False)
                       .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
                       .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
                       .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
                       .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), False)
                       .sign(self.key, hashes.SHA256()))
        base = self.folder / (file or f"{names[0]}-{kind}".replace("*", "_"))
        pair = Pair(base.with_name(base.name + ".pem"), base.with_name(base.name + ".key"), certificate)
        # Renames are atomic, so readers always find complete files.
        write_key(pair.key.with_name(pair.key.name + ".new"), key).rename(pair.key)
        fresh = pair.certificate.with_name(pair.certificate.name + ".new")
        fresh.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) +
                          self.x509.public_bytes(serialization.Encoding.PEM))
        fresh.rename(pair.certificate)
        return pair

    def answer_about(self, pair, days=7):
        """An OCSP response (DER), as a file."""
        answer = (ocsp.OCSPResponseBuilder()
                  .add_response(pair.x509, self.x509, hashes.SHA1(), ocsp.OCSPCertStatus.GOOD,
                                now() - DAY, now() + days * DAY, None, None)
                  .responder_id(ocsp.OCSPResponderEncoding.HASH, self.x509)
                  .sign(self.key, hashes.SHA256()))
        path = pair.certificate.with_suffix(".ocsp")
        path.write_bytes(answer.public_bytes(serialization.Encoding.DER))
        return path

    def client_context(self, pair=None, alpn=None):
        """A context for clients that trust only this authority; `pair` is the client certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.file)
        if pair:
            context.load_cert_chain(pair.certificate, pair.key)
        if alpn:
            context.set_alpn_protocols(alpn)
        return context


def make_authority(folder, name="test authority"):
    return Authority(folder, name)
